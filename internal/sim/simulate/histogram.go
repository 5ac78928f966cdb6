package simulate

import (
	"math/bits"
	"time"

	"github.com/unthrottle/unthrottle/internal/scenario"
	"github.com/unthrottle/unthrottle/internal/stats"
)

// A histogram of times has 128 buckets per power of two, so a quantile is off by less than 1 %. Smallest and
// largest are exact. Its size depends on its largest time: 7 kB for 10 s, and none while it is empty.
const subBits = 7

// The zero value is empty.
type histogram struct {
	counts   []uint32 // up to the bucket of the largest time
	n        uint64
	min, max time.Duration
}

// bucket returns the bucket of a time from 0. It is exact below 128 ns.
func bucket(v time.Duration) int {
	shift := max(0, bits.Len64(uint64(v))-subBits)
	return shift<<(subBits-1) + int(v>>shift)
}

// middle returns the middle of a bucket.
func middle(b int) time.Duration {
	const half = 1 << (subBits - 1)
	if b < 2*half {
		return time.Duration(b)
	}
	shift := b/half - 1
	low := time.Duration(b-shift*half) << shift
	return low + 1<<shift/2
}

func (h *histogram) add(v time.Duration) {
	if h.n == 0 || v < h.min {
		h.min = v
	}
	h.max = max(h.max, v)
	h.n++
	b := bucket(v)
	if b >= len(h.counts) {
		h.grow(b + 1)
	}
	h.counts[b]++
}

// grow makes room for so many buckets, a power of two of times at once.
func (h *histogram) grow(buckets int) {
	const step = 1 << (subBits - 1)
	larger := make([]uint32, (buckets+step-1)/step*step)
	copy(larger, h.counts)
	h.counts = larger
}

// quantile returns the time that a share p of all times does not exceed; nil: the histogram is empty.
func (h *histogram) quantile(p float64) *float64 {
	if h.n == 0 {
		return nil
	}
	b := stats.Bucket(len(h.counts), func(i int) uint64 { return uint64(h.counts[i]) }, p)
	return milliseconds(min(h.max, max(h.min, middle(b))))
}

func (h *histogram) maximum() *float64 {
	if h.n == 0 {
		return nil
	}
	return milliseconds(h.max)
}

// figures returns the quantiles with a count, which may differ from the number of times.
func (h *histogram) figures(count uint64) scenario.Latencies {
	return scenario.Latencies{
		Count: count, P50: h.quantile(0.5), P90: h.quantile(0.9), P95: h.quantile(0.95), P99: h.quantile(0.99), Max: h.maximum(),
	}
}

func milliseconds(d time.Duration) *float64 {
	v := float64(d) / float64(time.Millisecond)
	return &v
}
