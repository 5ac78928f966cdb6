package simulate

import "time"

// Cells per period of a strip.
const Cells = 50

// Strip shows a group's first periods as cells of equal length.
type Strip struct {
	Cgroup string
	Start  time.Duration // a boundary of its periods
	Period time.Duration
	Cells  []Cell // Cells for each period
}

// Cell is a fiftieth of a period.
type Cell struct {
	Used time.Duration // CPU time
	Held time.Duration // with a thread held by a quota
}

func newStrip(name string, start, period time.Duration, periods int) *Strip {
	return &Strip{Cgroup: name, Start: start, Period: period, Cells: make([]Cell, periods*Cells)}
}

// add spreads a stretch of time over the cells.
func (s *Strip) add(from, to time.Duration, running int, held bool) {
	length := s.Period / Cells
	end := s.Start + time.Duration(len(s.Cells))*length
	from, to = max(from, s.Start), min(to, end)
	for from < to {
		i := (from - s.Start) / length
		next := min(to, s.Start+(i+1)*length)
		s.Cells[i].Used += time.Duration(running) * (next - from)
		if held {
			s.Cells[i].Held += next - from
		}
		from = next
	}
}
