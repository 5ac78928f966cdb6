package diagnose

import (
	"slices"

	"github.com/unthrottle/unthrottle/bandwidth"
	"github.com/unthrottle/unthrottle/internal/see/recording"
)

// Shape of the timeline.
const (
	cellsPerPeriod = 50
	maxCells       = 2*cellsPerPeriod + 1 // a row may last two periods, if its timer was late or did not run
	blockRows      = 8                    // consecutive rows that the timeline keeps or drops together
	keptBlocks     = 4
	// unlimitedPeriod is the length of a row without any limit.
	unlimitedPeriod = int64(bandwidth.DefaultPeriod)
)

// cellSum has the sums of one cell of the current row.
type cellSum struct {
	length, width, wanted, stopped int64
	most                           int
}

// track follows the periods of one level's quota: the use of each, and whether it was throttled.
type track struct {
	level   int // -1: no quota anywhere, rows of unlimitedPeriod
	index   int
	period  int64
	quota   int64
	fills   int   // CPUs at once that fill the quota
	longest int64 // of a row
	ticking bool  // the events have the period timer
	partial bool  // the row began before the first period boundary of the events

	start int64
	cells []cellSum
	used  int64
	// excess is the CPU time of more CPUs at once than fill the quota.
	excess int64
	// spent is the CPU time up to holdAt, the moment at which the level first held a thread back; -1: it did
	// not.
	spent, holdAt int64
	busy          int64 // time with any CPU in use up to holdAt
	stopped       int64
	widest        int
	burstNS       int64
	tick          int64

	block  block
	blocks []block
	sums   periodSums
}

// periodSums are sums over whole periods that ended throttled.
type periodSums struct {
	periods, throttled int
	whole              int   // throttled periods with both boundaries in the events
	used               int64 // CPU time of the whole ones
	excess             int64 // part of used from more CPUs at once than fill the quota
	stopped            int64 // stopped time in the whole ones
	length             int64
	intervals          int   // whole throttled ones in which a hold began
	spent              int64 // CPU time up to that hold
	spentIn            int64 // wall time with any CPU in use up to it
	most               int64 // CPU time of the period with most of it
	mostWide           int   // most CPUs in use at once in it
	over               int64 // CPU time of the whole ones beyond the quota and the everyday overshoot
	overUnstopped      int   // periods with a quarter more than the quota's CPU time in which nothing was held back
	unstoppedUsed      int64 // most CPU time of one of these
}

// block is a group of consecutive rows.
type block struct {
	rows  []Row
	score [3]int64 // stopped, waiting, used
}

func newTracks(ls *levels, ticking bool, tick int64) []*track {
	var tracks []*track
	for i := range ls.all {
		l := &ls.all[i]
		if _, ok := l.Limit(); ok && len(tracks) < maxTracks {
			t := &track{level: i, index: len(tracks), period: l.PeriodNS, quota: *l.QuotaNS, burstNS: l.BurstNS,
				tick: tick, ticking: ticking, partial: ticking}
			tracks = append(tracks, t)
		}
	}
	if len(tracks) == 0 {
		tracks = append(tracks, &track{level: -1, period: unlimitedPeriod})
	}
	for _, t := range tracks {
		t.period = max(t.period, cellsPerPeriod)
		t.limit(t.quota)
		t.longest = t.period
		if t.ticking {
			t.longest = 2 * t.period
		}
		t.begin(0)
	}
	return tracks
}

// limit sets the quota.
func (t *track) limit(quota int64) {
	t.quota, t.fills = quota, ceilCPUs(float64(quota)/float64(t.period))
}

func (t *track) begin(at int64) {
	t.start, t.cells = at, t.cells[:0]
	t.used, t.excess, t.stopped, t.spent, t.busy, t.holdAt, t.widest = 0, 0, 0, 0, 0, -1, 0
}

// add counts a stretch of time without a change.
func (t *track) add(a *Analysis, from, to int64, width, wanted int, stopped bool) {
	// After a very long time without events only its first and last rows matter: the others would be alike.
	if idle := to - t.start - t.longest*2*blockRows; idle > 0 {
		t.fill(a, from, t.start+t.longest, width, wanted, stopped)
		t.close(a, t.start+t.longest, false)
		skip := idle / t.longest * t.longest
		t.begin(t.start + t.longest + skip)
		from = t.start
	}
	for to-t.start >= t.longest {
		end := t.start + t.longest
		t.fill(a, from, end, width, wanted, stopped)
		t.close(a, end, !t.ticking && t.level >= 0 && a.levels.all[t.level].held > 0)
		t.begin(end)
		from = max(from, end)
	}
	t.fill(a, from, to, width, wanted, stopped)
}

// fill counts a stretch of time within the row.
func (t *track) fill(a *Analysis, from, to int64, width, wanted int, stopped bool) {
	from = max(from, t.start)
	if to <= from {
		return
	}
	d := to - from
	t.used += int64(width) * d
	t.widest = max(t.widest, width)
	if t.holdAt < 0 {
		t.spent += int64(width) * d
		if width > 0 {
			t.busy += d
		}
	}
	if t.level >= 0 && a.levels.all[t.level].held > 0 {
		t.stopped += d
	}
	if t.level >= 0 && width > t.fills {
		t.excess += int64(width-t.fills) * d
	}
	cell := t.period / cellsPerPeriod
	for from < to {
		i := (from - t.start) / cell
		end := min(to, t.start+(i+1)*cell)
		i = min(i, maxCells-1)
		for int64(len(t.cells)) <= i {
			t.cells = append(t.cells, cellSum{})
		}
		t.cells[i].add(end-from, width, wanted, stopped)
		from = end
	}
}

// heldBack notes that a level begins to hold a thread back.
func (t *track) heldBack(now int64, level int) {
	if level == t.level && t.holdAt < 0 {
		t.holdAt = now
	}
}

// expire ends the row at the period timer's expiry.
func (t *track) expire(a *Analysis, at int64, p recording.PeriodState) {
	at = max(t.start, min(at, a.now))
	if at == t.start {
		return
	}
	t.close(a, at, p.StoppedCPUs > 0)
	t.partial = false
	t.begin(at)
	if p.QuotaNS > 0 {
		t.limit(p.QuotaNS)
	}
}

// close ends the row that began at t.start.
func (t *track) close(a *Analysis, end int64, throttled bool) {
	a.countAll()
	for _, p := range a.pools.all {
		if throttled {
			p.throttled[t.index] += p.period[t.index]
			if float64(p.period[t.index]) > selfMost*float64(t.quota) {
				p.large[t.index]++
			}
		}
		p.most[t.index] = max(p.most[t.index], p.period[t.index])
		p.period[t.index] = 0
	}
	t.sum(end, throttled)
	row := Row{Start: span(t.start), Length: span(end - t.start), Throttled: throttled}
	var score [3]int64
	for i := range t.cells {
		c := &t.cells[i]
		row.Cells = append(row.Cells, c.cell())
		score[0] += c.stopped
		score[1] += max(0, c.wanted-c.width)
		score[2] += c.width
	}
	t.block.rows = append(t.block.rows, row)
	for i := range score {
		t.block.score[i] += score[i]
	}
	if len(t.block.rows) == blockRows {
		t.keep()
	}
}

// sum adds the row to the sums over periods.
func (t *track) sum(end int64, throttled bool) {
	if t.level < 0 {
		return
	}
	s := &t.sums
	s.periods++
	if t.used > s.most {
		s.most, s.mostWide = t.used, t.widest
	}
	if t.holdAt < 0 && t.stopped == 0 && !throttled && t.used > t.quota+t.quota/4+t.burstNS {
		s.overUnstopped++
		s.unstoppedUsed = max(s.unstoppedUsed, t.used)
	}
	if !throttled {
		return
	}
	s.throttled++
	if t.partial {
		return
	}
	s.whole++
	s.used += t.used
	s.over += max(0, t.used-t.everyday())
	s.excess += t.excess
	s.stopped += t.stopped
	s.length += end - t.start
	if t.holdAt >= 0 && t.busy > 0 {
		s.intervals++
		s.spent += t.spent
		s.spentIn += t.busy
	}
}

// debtTicks bounds the everyday overshoot. A CPU notices at its next tick that the quota is used up, and may
// have let one tick pass already.
const debtTicks = 2

// everyday is the CPU time that a period may reach without a debt.
func (t *track) everyday() int64 {
	return t.quota + t.burstNS + debtTicks*t.tick*int64(max(1, t.widest))
}

// keep puts a full block among the worst, if it is one of them.
func (t *track) keep() {
	t.blocks = append(t.blocks, t.block)
	t.block = block{}
	slices.SortStableFunc(t.blocks, func(x, y block) int { return slices.Compare(y.score[:], x.score[:]) })
	t.blocks = t.blocks[:min(len(t.blocks), keptBlocks)]
}

// timeline returns the rows of the worst blocks, the worst first.
func (t *track) timeline() []Row {
	var rows []Row
	for _, b := range t.blocks {
		rows = append(rows, b.rows...)
	}
	return rows
}
