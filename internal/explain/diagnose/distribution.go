package diagnose

import (
	"math/bits"
	"time"

	"github.com/unthrottle/unthrottle/internal/stats"
)

// distribution is a distribution of times in buckets of 1/64 of their size, so quantiles are at most 1.6 % too
// large. It has at most some 3,000 buckets.
type distribution struct {
	buckets []uint32
	count   int
	most    int64
}

const fineBits = 6

func bucketOf(ns int64) int {
	v := uint64(max(0, ns))
	if v < 1<<fineBits {
		return int(v)
	}
	shift := bits.Len64(v) - fineBits - 1
	return (shift+1)<<fineBits + int(v>>shift) - 1<<fineBits
}

// bucketEnd is the largest time in a bucket.
func bucketEnd(i int) int64 {
	if i < 1<<fineBits {
		return int64(i)
	}
	shift := i>>fineBits - 1
	return (int64(i&(1<<fineBits-1)+1<<fineBits)+1)<<shift - 1
}

func (s *distribution) add(ns int64) { s.addMany(ns, 1) }

func (s *distribution) addMany(ns int64, count int) {
	i := bucketOf(ns)
	for len(s.buckets) <= i {
		s.buckets = append(s.buckets, 0)
	}
	s.buckets[i] += uint32(count)
	s.count += count
	s.most = max(s.most, ns)
}

// quantile is the time that a share q of all times do not exceed.
func (s *distribution) quantile(q float64) int64 {
	i := stats.Bucket(len(s.buckets), func(i int) int { return int(s.buckets[i]) }, q)
	return min(s.most, bucketEnd(i))
}

func (s *distribution) quantiles() *Quantiles {
	if s.count == 0 {
		return nil
	}
	var lengths stats.Lengths
	for i, n := range s.buckets {
		lengths.Add(max(time.Microsecond, time.Duration(bucketEnd(i))), int(n))
	}
	return &Quantiles{
		Count: s.count, P50: time.Duration(s.quantile(0.5)), P90: time.Duration(s.quantile(0.9)),
		P99: time.Duration(s.quantile(0.99)), Max: time.Duration(s.most), Lengths: lengths.All(),
	}
}
