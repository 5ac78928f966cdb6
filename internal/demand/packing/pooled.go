package packing

import "math"

// Moments are cumulants of how many CPUs a container wants at a moment: of independent demands they add up.
type Moments struct{ Mean, Variance, Third float64 }

func (m Moments) plus(more Moments) Moments {
	return Moments{m.Mean + more.Mean, m.Variance + more.Variance, m.Third + more.Third}
}

// Rule tells what containers of one host want together, at a risk: see the package's documentation.
type Rule struct{ risk, z, skew float64 }

// NewRule is the rule for a share of the time, between 0 and 0.5, for which demand may be above a host's CPUs.
func NewRule(risk float64) Rule {
	z := normal(risk)
	return Rule{risk: risk, z: z, skew: max(0, (z*z-1)/6)}
}

// Risk is that share of the time.
func (r Rule) Risk() float64 { return r.risk }

// Pooled is the demand of containers that share a host. Its zero value is of none.
type Pooled struct {
	most   float64
	held   []Moments
	widest []burst
	wants  float64
}

// Add adds a container: what it wants in each phase and the most that it ever wants, both in CPUs, as in [Container]. All
// containers of a host have equally many phases, and all are added by one rule.
func (r Rule) Add(p *Pooled, demand []Moments, mostCPUs float64) {
	for len(p.held) < len(demand) {
		p.held, p.widest = append(p.held, Moments{}), append(p.widest, burst{})
	}
	p.most += mostCPUs
	for k, m := range demand {
		p.held[k] = p.held[k].plus(m)
		if b := r.burst(m); b.width > p.widest[k].width {
			p.widest[k] = b
		}
	}
	p.wants = 0
	for k, m := range p.held {
		p.wants = max(p.wants, r.quantile(m, p.most, p.widest[k]))
	}
}

// Wants is how many CPUs they want for all but the risk, in the phase in which they want most.
func (p *Pooled) Wants() (cpus float64) { return p.wants }

// WantsWith is how many CPUs those of both want together. Neither changes.
//
// It is no less than either wants alone. The quantile by three moments may be: a container with a narrow spread makes the
// demand of one with a rare and wide burst look less skewed than it is.
func (r Rule) WantsWith(p, more *Pooled) (cpus float64) {
	cpus = max(p.wants, more.wants)
	if len(p.held) == 0 || len(more.held) == 0 {
		return cpus
	}
	most := p.most + more.most
	for k, m := range p.held {
		b := p.widest[k]
		if more.widest[k].width > b.width {
			b = more.widest[k]
		}
		cpus = max(cpus, r.quantile(m.plus(more.held[k]), most, b))
	}
	return cpus
}

// Fits tells whether so many CPUs are enough for what containers want. A host that is exactly full fits.
func Fits(wantedCPUs, cpus float64) bool { return wantedCPUs <= cpus+rounding }

// rounding is what sums of CPUs may be off by: a host that is exactly full is not over.
const rounding = 1e-9

// normal is the quantile of the normal distribution that is exceeded for a share of the time.
func normal(share float64) float64 { return math.Sqrt2 * math.Erfinv(1-2*share) }

// burst is what the moments of one container tell of it if it has two levels: how much wider the upper one is, and for
// what share of the time. z is the normal quantile that what is beside it exceeds for the risk, given that it bursts.
type burst struct{ width, share, variance, z float64 }

// burst is what a container's moments tell of its bursts; none of one that comes for less than the risk.
func (r Rule) burst(m Moments) burst {
	b := burstOf(m)
	if b.share <= r.risk {
		return burst{}
	}
	b.z = normal(r.risk / b.share)
	return b
}

// burstOf is the burst that moments tell of; none where most of the time is at the upper level.
func burstOf(m Moments) burst {
	if m.Variance <= rounding || m.Third <= 0 {
		return burst{}
	}
	// Of a share p and a width w the variance is w^2*p*(1-p), the third moment that times w*(1-2*p).
	w := math.Sqrt(4*m.Variance + (m.Third/m.Variance)*(m.Third/m.Variance))
	return burst{width: w, share: (1 - m.Third/m.Variance/w) / 2, variance: m.Variance}
}

// quantile is what is exceeded for the risk, of sums of moments and of most: that of all together, or of the widest
// burst with the others beside it, which is more where one container has most of the spread.
func (r Rule) quantile(m Moments, most float64, b burst) float64 {
	if m.Variance <= rounding {
		return min(m.Mean, most)
	}
	pooled := m.Mean + r.z*math.Sqrt(m.Variance) + r.skew*max(0, m.Third)/m.Variance
	if b.width > 0 {
		pooled = max(pooled, m.Mean+b.width*(1-b.share)+b.z*math.Sqrt(max(0, m.Variance-b.variance)))
	}
	return min(most, pooled)
}
