package simulate

import "time"

// CellsPerPeriod is the number of cells per period of a timeline.
const CellsPerPeriod = 50

// Timeline shows a group's first periods as cells of equal length.
type Timeline struct {
	Cgroup string
	Start  time.Duration // a boundary of its periods
	Period time.Duration
	Cells  []TimelineCell // CellsPerPeriod for each period
}

// TimelineCell is a fiftieth of a period.
type TimelineCell struct {
	Used time.Duration // CPU time
	Held time.Duration // with a thread held by a quota
	Most int           // threads that ran at once
}

func newTimeline(name string, start, period time.Duration, periods int) *Timeline {
	return &Timeline{Cgroup: name, Start: start, Period: period, Cells: make([]TimelineCell, periods*CellsPerPeriod)}
}

// add spreads a stretch of time over the cells.
func (s *Timeline) add(from, to time.Duration, running int, held bool) {
	length := s.Period / CellsPerPeriod
	end := s.Start + time.Duration(len(s.Cells))*length
	from, to = max(from, s.Start), min(to, end)
	for from < to {
		i := (from - s.Start) / length
		next := min(to, s.Start+(i+1)*length)
		s.Cells[i].Used += time.Duration(running) * (next - from)
		s.Cells[i].Most = max(s.Cells[i].Most, running)
		if held {
			s.Cells[i].Held += next - from
		}
		from = next
	}
}
