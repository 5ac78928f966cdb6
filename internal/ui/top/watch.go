package top

import (
	"context"
	"sync"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/see/observe"
	"github.com/unthrottle/unthrottle/internal/see/probe"
	"github.com/unthrottle/unthrottle/internal/see/probe/counts"
)

// Watch observes the containers of a host until ctx ends and gives a frame per window. probe may be nil; note then says
// what is missing.
func Watch(ctx context.Context, h *cgroup.Host, o observe.WatchOptions, p observe.Probe, note string, show func(Frame)) error {
	feed := feed{Note: note}
	var timelines periodTimelines
	if p != nil {
		o.Sampler.Probe = p
		rows := make(chan error, 1)
		ctx, cancel := context.WithCancel(ctx)
		defer func() { cancel(); <-rows }()
		go func() {
			rows <- p.PeriodRows(ctx, func(r counts.PeriodRow) error { timelines.add(r); return nil })
		}()
	}
	return observe.NewWatcher(h, o).Run(ctx, func(s observe.Snapshot) { show(feed.Frame(s, timelines.take)) })
}

// periodTimelines collects the periods that ended since they were last taken.
type periodTimelines struct {
	mu    sync.Mutex
	cells map[uint64][]timelineCell
}

// maxTimelines bounds the containers between two frames; period rows are only of those watched.
const maxTimelines = probe.MaxContainers

func (s *periodTimelines) add(r counts.PeriodRow) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cells == nil {
		s.cells = map[uint64][]timelineCell{}
	}
	cells := s.cells[r.Cgroup]
	if len(cells) >= cellsKept || cells == nil && len(s.cells) >= maxTimelines {
		return
	}
	s.cells[r.Cgroup] = append(cells, timelineCell{Width: r.MeanWidth, Stopped: r.StoppedShare})
}

// take gives a container's new periods.
func (s *periodTimelines) take(id uint64) []timelineCell {
	s.mu.Lock()
	defer s.mu.Unlock()
	cells := s.cells[id]
	delete(s.cells, id)
	return cells
}
