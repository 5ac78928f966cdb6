package roles

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
)

const (
	// roleGap is by which factor mean runs must differ for threads of one name to have different roles.
	roleGap = 8.0
	// kindGap is that factor where something else tells them apart too: another waker, or a process that began
	// during the recording.
	kindGap = 3.0
	// leastWork is the share of a group's CPU time from which on a thread or a side tells roles apart; or it has
	// leastRuns runs.
	leastWork = 0.02
	leastRuns = 20
)

// The roles that no title tells, as they stand behind the pool's name.
const (
	child     = "(child)"
	workers   = "(workers)"
	longRuns  = "(long runs)"
	shortRuns = "(short runs)"
)

// Roles are the roles of a recording's threads. The zero value has none.
type Roles struct{ of map[partKey]string }

// Pool returns the pool of thread tid, whose name makes it one of pool: that name, or that of its role.
func (r *Roles) Pool(tid uint32, pool string) string {
	if r == nil {
		return pool
	}
	if role, ok := r.of[partKey{tid, pool}]; ok {
		return role
	}
	return pool
}

// Any reports whether any pool has more than one role.
func (r *Roles) Any() bool { return r != nil && len(r.of) > 0 }

// group are the threads of one name in processes of one name.
type group struct {
	parts []*part
	total int64
	all   int64 // CPU time of the whole container
	scan  *Scan
}

// goes tells whether Go built the group's program. Its processes have one name: where that has to be asked for, it is asked of the one
// with most CPU time.
func (g *group) goes() bool {
	if g.scan.goes == nil {
		return slices.ContainsFunc(g.parts, func(p *part) bool { return p.process.goes })
	}
	most := slices.MaxFunc(g.parts, func(x, y *part) int { return cmp.Compare(x.total, y.total) })
	return g.scan.goes(most.process.tgid)
}

// roles splits every group.
func (s *Scan) roles() *Roles {
	type key struct{ process, pool string }
	groups := map[key]*group{}
	for _, p := range s.order {
		k := key{p.process.name, p.pool}
		g := groups[k]
		if g == nil {
			g = &group{scan: s}
			groups[k] = g
		}
		g.parts = append(g.parts, p)
		g.total += p.total
	}
	r := &Roles{of: map[partKey]string{}}
	all := sumOf(s.order).total
	for _, g := range groups {
		g.all = all
		g.split()
		for _, p := range g.parts {
			if p.role != "" {
				r.of[partKey{p.tid, p.pool}] = p.full()
			}
		}
	}
	return r
}

// full is the name of the part's pool with its role.
func (p *part) full() string {
	if strings.HasPrefix(p.role, "(") {
		return p.pool + " " + p.role
	}
	return p.role
}

// split gives the parts of a group their roles.
func (g *group) split() {
	var plain, born []*part
	for _, p := range g.parts {
		role, told := title(p.process.title)
		p.role = role
		switch {
		case role != "":
		case p.process.born && !told:
			born = append(born, p)
		default:
			plain = append(plain, p)
		}
	}
	if of := sumOf(plain); !g.tells(&of) || of.runs < leastRuns { // to begin processes is what it does
		plain, born = append(plain, born...), nil
	}
	if rest := g.runsApart(g.workersApart(plain)); len(rest) < len(plain) {
		if g.goes() {
			for _, p := range plain {
				p.role = ""
			}
		} else {
			plain = rest
		}
	}
	g.children(plain, born)
}

// children gives processes that began during the recording, and whose titles are not known, a role if their runs are
// longer than those of the processes before them: that of short-lived processes with a title, else a role with runs of
// their length, else that of a child.
func (g *group) children(plain, born []*part) {
	usual := sumOf(plain)
	var apart []*part
	for _, p := range born {
		if p.total > 0 && p.usualRun() >= kindGap*usual.mean() {
			apart = append(apart, p)
		}
	}
	of := sumOf(apart)
	if float64(of.total) < leastWork*float64(g.all) {
		return
	}
	others := map[string]*sum{}
	for _, p := range g.parts {
		if p.role != "" && p.total > 0 {
			if others[p.role] == nil {
				others[p.role] = &sum{}
			}
			others[p.role].add(p)
		}
	}
	role, nearest := child, roleGap
	for _, name := range slices.Sorted(maps.Keys(others)) {
		d := apartBy(others[name].mean(), of.mean())
		if others[name].ended && !strings.HasPrefix(name, "(") {
			d = 0
		}
		if d < nearest {
			role, nearest = name, d
		}
	}
	for _, p := range apart {
		p.role = role
	}
}

// workersApart gives the threads beside the main threads the role of workers, if both work and differ. It returns
// those without a role.
func (g *group) workersApart(plain []*part) []*part {
	beside := map[*process]bool{}
	for _, p := range plain {
		if !p.main && p.total > 0 {
			beside[p.process] = true
		}
	}
	var mains, others sum
	for _, p := range plain {
		switch {
		case !beside[p.process]:
		case p.main:
			mains.add(p)
		default:
			others.add(p)
		}
	}
	gap := roleGap
	if mains.waker() != others.waker() {
		gap = kindGap
	}
	if !g.tells(&mains) || !g.tells(&others) || apartBy(mains.mean(), others.mean()) < gap {
		return plain
	}
	var rest []*part
	for _, p := range plain {
		if beside[p.process] && !p.main {
			p.role = workers
		} else {
			rest = append(rest, p)
		}
	}
	return rest
}

// tells reports whether a side works enough to be a role: by its CPU time, or by its runs, of which those that a
// timer began do not count. A thread that only looks now and then has no role of its own.
func (g *group) tells(s *sum) bool {
	return g.works(s.total, s.runs-min(s.runs, s.woken[byTimer]))
}

// works reports whether so much CPU time, in so many runs, is enough.
func (g *group) works(total int64, runs int) bool {
	share := float64(total) / float64(max(1, g.total))
	return share >= leastWork && total > 0 || runs >= leastRuns && (g.scan.goes == nil || share >= leastSeen)
}

// runsApart parts threads whose runs are of two very different lengths. Threads with little CPU time do not tell
// where the roles part: they go to the side on which they are.
// It returns those without a role.
func (g *group) runsApart(plain []*part) []*part {
	var telling []*part
	for _, p := range plain {
		if p.total > 0 && g.works(p.total, p.runs) {
			telling = append(telling, p)
		}
	}
	slices.SortStableFunc(telling, func(x, y *part) int { return cmp.Compare(x.mean(), y.mean()) })
	from, widest, runs := 0.0, roleGap, 0
	for i := 1; i < len(telling); i++ {
		short, long := telling[i-1].mean(), telling[i].mean()
		if runs += telling[i-1].runs; long >= widest*short && runs >= leastRuns {
			from, widest = math.Sqrt(short*long), long/short
		}
	}
	if from == 0 {
		return plain
	}
	var short, long []*part
	for _, p := range plain {
		if p.total > 0 && p.mean() >= from {
			long = append(long, p)
		} else {
			short = append(short, p)
		}
	}
	apart, rest, role := long, short, longRuns
	if s, l := sumOf(short), sumOf(long); l.woken[byOutside] > s.woken[byOutside] && g.tells(&l) {
		apart, rest, role = short, long, shortRuns
	}
	for _, p := range apart {
		p.role = role
	}
	return rest
}

// mean is the CPU time of the part's runs on the mean, in ns. One that never slept is one run.
func (p *part) mean() float64 { return float64(p.total) / float64(max(1, p.runs)) }

// runsBeyondStart is how many runs show what a process does beside its start.
const runsBeyondStart = 8

// usualRun is the mean without the longest of many runs, which may be how a process begins.
func (p *part) usualRun() float64 {
	if p.runs < runsBeyondStart {
		return p.mean()
	}
	return float64(p.total-p.longest) / float64(p.runs-1)
}

// sum has the sums of several parts.
type sum struct {
	total int64
	runs  int
	woken [wakers]int
	ended bool // one of them
}

func sumOf(parts []*part) (s sum) {
	for _, p := range parts {
		s.add(p)
	}
	return s
}

func (s *sum) add(p *part) {
	s.total += p.total
	s.runs += p.runs
	s.ended = s.ended || p.ended
	for i, n := range p.woken {
		s.woken[i] += n
	}
}

func (s *sum) mean() float64 { return float64(s.total) / float64(max(1, s.runs)) }

// waker is what woke them most often.
func (s *sum) waker() (most waker) {
	for i, n := range s.woken {
		if n > s.woken[most] {
			most = waker(i)
		}
	}
	return most
}

// apartBy is by which factor two times differ; 1 if one is 0.
func apartBy(x, y float64) float64 {
	if x <= 0 || y <= 0 {
		return 1
	}
	return max(x, y) / min(x, y)
}
