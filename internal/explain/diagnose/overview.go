package diagnose

import "time"

// Stretch is one of the equal stretches of time into which a whole recording is divided.
type Stretch struct {
	Start  time.Duration // since Explanation.Start
	Length time.Duration // the last one may be shorter
	Cell
}

// Shape of the overview.
const (
	maxStretches = 240
	// leastStretch is the length of a stretch of a short recording.
	leastStretch = int64(10 * time.Millisecond)
)

// overview sums a recording up in maxStretches stretches at most. How long it will be is not known at its start: when the
// stretches are used up, two of them become one.
type overview struct {
	length int64 // of a stretch; 0: nothing was added
	sums   []cellSum
}

// add counts a stretch of time without a change.
func (o *overview) add(from, to int64, width, wanted int, stopped bool) {
	o.length = max(o.length, leastStretch)
	for to > o.length*maxStretches {
		o.halve()
	}
	for from < to {
		i := from / o.length
		end := min(to, (i+1)*o.length)
		for int64(len(o.sums)) <= i {
			o.sums = append(o.sums, cellSum{})
		}
		o.sums[i].add(end-from, width, wanted, stopped)
		from = end
	}
}

// halve makes one stretch of each two.
func (o *overview) halve() {
	for i := range (len(o.sums) + 1) / 2 {
		sum := o.sums[2*i]
		if 2*i+1 < len(o.sums) {
			sum.join(o.sums[2*i+1])
		}
		o.sums[i] = sum
	}
	o.sums = o.sums[:(len(o.sums)+1)/2]
	o.length *= 2
}

// stretches are the result, in the order of time.
func (o *overview) stretches() []Stretch {
	all := make([]Stretch, 0, len(o.sums))
	for i := range o.sums {
		all = append(all, Stretch{span(int64(i) * o.length), span(o.sums[i].length), o.sums[i].cell()})
	}
	return all
}

// add counts so long a time without a change.
func (c *cellSum) add(d int64, width, wanted int, stopped bool) {
	c.length += d
	c.width += int64(width) * d
	c.wanted += int64(wanted) * d
	c.most = max(c.most, width)
	if stopped {
		c.stopped += d
	}
}

// join adds what another sum has.
func (c *cellSum) join(other cellSum) {
	c.length += other.length
	c.width += other.width
	c.wanted += other.wanted
	c.stopped += other.stopped
	c.most = max(c.most, other.most)
}

// cell is the mean of what was counted.
func (c *cellSum) cell() Cell {
	n := float64(max(1, c.length))
	return Cell{MeanWidth: float64(c.width) / n, MostWidth: c.most, Stopped: float64(c.stopped) / n, Wanted: float64(c.wanted) / n}
}
