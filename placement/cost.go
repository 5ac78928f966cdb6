package placement

import "math/bits"

// A cost holds what a choice of CPUs costs, field by field, the most important
// first. Each field is a run of bits wide enough for the machine, so that costs
// add up with two additions and compare with two comparisons. A field may be
// negative (a half-core that is used up again): the fields below it are too
// narrow to reach half of its unit.
type cost [2]int64

// never is a cost that no choice has; two of them still add up.
const never = int64(1) << 61

var impossible = cost{never, 0}

func (c *cost) plus(d *cost) cost { return cost{c[0] + d[0], c[1] + d[1]} }

func (c *cost) times(n int) cost { return cost{c[0] * int64(n), c[1] * int64(n)} }

func (c *cost) less(d *cost) bool {
	return c[0] < d[0] || c[0] == d[0] && c[1] < d[1]
}

// can tells costs from impossible ones and sums that one is in.
func (c *cost) can() bool { return c[0] < never/2 }

// packer hands out fields from the most important down.
type packer struct{ used [2]int }

// wordBits leaves room for the sign and for never.
const wordBits = 60

// field returns the unit of a field that holds -most to most. Where no bits are
// left the unit is nothing.
func (p *packer) field(most int) cost {
	width := bits.Len(uint(most)) + 1
	word := 0
	if p.used[1] > 0 || p.used[0]+width > wordBits {
		word = 1
	}
	p.used[word] += width
	if p.used[word] > wordBits {
		p.used[word] = wordBits
		return cost{}
	}
	var unit cost
	unit[word] = 1 << (wordBits - p.used[word])
	return unit
}
