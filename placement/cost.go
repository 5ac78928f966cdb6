package placement

// A cost holds what a choice of CPUs costs, field by field, the most important
// first. Costs add up field by field and compare like words in a dictionary.
// Four 16-bit fields share a word, so that adding is three additions; no field
// outgrows its bits, because none counts more than a machine's 8,192 CPUs.
type cost [3]uint64

// The fields of a cost, the most important first. A field per tree level holds
// levels as the machine nests them, the widest first.
const (
	fieldSpans    = 0 // groups touched, per level: fields 0 to 3
	fieldShared   = 4 // cores with a thread that others can use
	fieldStranded = 5 // cores of which we leave free threads: halves that no whole-core request can use
	fieldClusters = 6 // clusters touched
	fieldLeft     = 8 // CPUs left free in the groups touched, per level: fields 8 to 11
)

func (c *cost) add(field, amount int) {
	c[field/4] += uint64(amount) << (48 - 16*(field%4))
}

func (c *cost) plus(d *cost) cost {
	return cost{c[0] + d[0], c[1] + d[1], c[2] + d[2]}
}

func (c *cost) less(d *cost) bool {
	for i := range c {
		if c[i] != d[i] {
			return c[i] < d[i]
		}
	}
	return false
}
