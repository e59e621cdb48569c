"""Mutual information, and bounds on it, computed without any of the code under test."""

from fractions import Fraction

import numpy as np


def information_nodes(points, weights, deviations, normals):
    """Estimate I(S; Y) of Y = points[S] + deviations * Z, node by node; returns one value per row of normals.

    Row z contributes sum_s w_s log(p(y_s | s) / p(y_s)) at y_s = points_s + deviations * z, written with expm1 and
    log1p so that nothing cancels when the noise is ten thousand times larger than the signal.
    """
    scaled = points / deviations
    total = np.zeros(len(normals))
    for s in range(len(weights)):
        step = scaled - scaled[s]  # (n, r)
        log_ratio = normals @ step.T - 0.5 * (step**2).sum(axis=1)  # log p(y_s | t) - log p(y_s | s)
        with np.errstate(over="ignore"):
            small = -np.log1p(np.expm1(np.minimum(log_ratio, 1.0)) @ weights)
        top = log_ratio.max(axis=1)
        large = -(top + np.log(np.exp(log_ratio - top[:, None]) @ weights))
        total += weights[s] * np.where(top < 0.5, small, large)
    return total


def exact_information(points, weights, deviation):
    """Integrate over the noise of a one-dimensional release, to about ten digits."""
    nodes, node_weights = np.polynomial.legendre.leggauss(16)
    edges = np.linspace(-9, 9, 4001)
    middle, half = (edges[1:] + edges[:-1]) / 2, (edges[1:] - edges[:-1]) / 2
    z = (middle[:, None] + half[:, None] * nodes).ravel()
    density = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi) * (half[:, None] * node_weights).ravel()
    values = information_nodes(points[:, None], weights, np.array([deviation]), z[:, None])
    return float(density @ values)


def estimated_information(points, weights, deviations, rng, n_pairs):
    """Estimate the information by Monte Carlo with antithetic pairs; returns it and its standard error."""
    z = rng.standard_normal((n_pairs, points.shape[1]))
    values = 0.5 * (
        information_nodes(points, weights, deviations, z) + information_nodes(points, weights, deviations, -z)
    )
    return float(values.mean()), float(values.std() / np.sqrt(n_pairs))


def exact_leakage(noise, belief):
    """Half the sum of variance ratios, of the doubles that are really used, in rational arithmetic."""
    p = [Fraction(x) for x in belief.probabilities().tolist()]
    total = sum(p)
    leak = Fraction(0)
    for column, variance in zip(noise.coordinates.T.tolist(), noise.variances.tolist(), strict=True):
        u = [Fraction(x) for x in column]
        mean = sum(w * x for w, x in zip(p, u, strict=True)) / total
        leak += sum(w * (x - mean) ** 2 for w, x in zip(p, u, strict=True)) / total / Fraction(variance)
    return leak / 2


def quadrature_information(points, weights, deviations, n_nodes=80):
    """Integrate over the noise of a two-dimensional release, by Gauss-Hermite nodes."""
    nodes, node_weights = np.polynomial.hermite_e.hermegauss(n_nodes)
    grid = np.stack(np.meshgrid(nodes, nodes), axis=-1).reshape(-1, 2)
    density = np.outer(node_weights, node_weights).ravel() / (2 * np.pi)
    return float(density @ information_nodes(points, weights, deviations, grid))
