"""Histograms: atomics that must stay, and atomics that need not.

Which bin a sample falls into is known only when it is read, so two threads may hit one bin at
once. Look at

- *Passes* of `histogram`: `demote_atomics` leaves the addition alone, and says why. Compare
  `rescale`, whose `/=` is no atomic at all, and `count_in_range`, where `make_thread_local` makes
  the contention away.
- *Launch*: the time depends on the data, not only on n. With all samples in one bin, threads wait
  for each other.
- *Code*: a locked add in the middle of the loop; it keeps the whole loop from being vectorised.
"""

import numpy as np
from qd_studio import engine as qd


@qd.kernel
def histogram(
    samples: qd.types.NDArray[qd.f32, 1],
    bins: qd.types.NDArray[qd.i32, 1],
    low: qd.f32,
    high: qd.f32,
):
    """Count samples into equal bins over [low, high); values outside go to the end bins."""
    for i in range(samples.shape[0]):
        place = (samples[i] - low) / (high - low) * bins.shape[0]
        index = min(max(qd.cast(qd.floor(place), qd.i32), 0), bins.shape[0] - 1)
        bins[index] += 1


@qd.kernel
def rescale(bins: qd.types.NDArray[qd.i32, 1], density: qd.types.NDArray[qd.f32, 1], width: qd.f32):
    """Counts to a density with integral 1."""
    total = 0
    for b in range(bins.shape[0]):
        total += bins[b]
    for b in range(bins.shape[0]):
        density[b] = bins[b]
        density[b] /= total * width


@qd.kernel
def count_in_range(samples: qd.types.NDArray[qd.f32, 1], low: qd.f32, high: qd.f32) -> qd.i32:
    hits = 0
    for i in range(samples.shape[0]):
        if low <= samples[i] < high:
            hits += 1
    return hits


@histogram.workload(
    n=[1 << 10, 1 << 22], n_bins=[16, 1024], bytes=lambda n, n_bins: 4 * n + 8 * n_bins
)
def bell_curve(n, n_bins):
    samples = np.random.default_rng(10).standard_normal(n, dtype=np.float32)
    return samples, np.zeros(n_bins, np.int32), -4.0, 4.0


@rescale.workload(n_bins=[64, 4096], bytes=lambda n_bins: 12 * n_bins)
def counts(n_bins):
    bins = np.random.default_rng(11).integers(0, 1000, n_bins, dtype=np.int32)
    return bins, np.zeros(n_bins, np.float32), 8.0 / n_bins


@count_in_range.workload(n=[1 << 10, 1 << 22], bytes=lambda n: 4 * n)
def one_sigma(n):
    return np.random.default_rng(12).standard_normal(n, dtype=np.float32), -1.0, 1.0


@histogram.check
def every_sample_is_counted(before, after, result):
    samples, bins, low, high = before
    place = np.floor((samples - low) / (high - low) * bins.size).astype(np.int64)
    expected = bins + np.bincount(place.clip(0, bins.size - 1), minlength=bins.size)
    assert after[1].sum() == expected.sum()
    # A sample within rounding of an edge may fall on either side of it.
    assert np.abs(after[1] - expected).max() <= 2 + samples.size // 100_000


@rescale.check
def integrates_to_one(before, after, result):
    bins, _, width = before
    np.testing.assert_allclose(after[1], bins / (bins.sum() * np.float64(width)), rtol=1e-5)


@count_in_range.check
def counts_hits(before, after, result):
    samples, low, high = before
    assert result == np.count_nonzero((low <= samples) & (samples < high))


def main():
    samples, bins, low, high = bell_curve(1 << 12, 16)
    histogram(samples, bins, low, high)
    for count in bins:
        print("#" * (count // 16))
    print(f"within one sigma: {count_in_range(samples, -1.0, 1.0) / samples.size:.1%}")


if __name__ == "__main__":
    qd.init(arch=qd.cpu)
    main()
