package main

import (
	"fmt"
	"slices"

	"github.com/unthrottle/unthrottle/test/study"
)

// shardedRow is a service under one way, with one container and with two.
type shardedRow struct {
	pieces []shardedPiece
	way    string
}

// of are the values of all rounds with so many containers.
func (r shardedRow) of(containers int, value func(shardedPoint) *float64) study.Spread {
	var all []float64
	for _, p := range r.pieces {
		for _, at := range p.Points {
			if v := value(at); at.Way == r.way && at.Containers == containers && v != nil {
				all = append(all, *v)
			}
		}
	}
	return study.SpreadOf(all)
}

// String is the row: each figure of one container, then of two.
func (r shardedRow) String() string {
	both := func(value func(shardedPoint) *float64, spread bool) string {
		text := ""
		for i, n := range []int{1, 2} {
			s := r.of(n, value)
			if i > 0 {
				text += "; "
			}
			if s.Rounds == 0 {
				text += "-"
			} else if text += short(s.Median); spread {
				text += fmt.Sprintf(" (%s to %s)", short(s.Low), short(s.High))
			}
		}
		return text
	}
	return study.Row("`"+r.pieces[0].Service+"`", r.way,
		both(func(p shardedPoint) *float64 { return p.P50 }, false),
		both(func(p shardedPoint) *float64 { return p.P99 }, true),
		both(func(p shardedPoint) *float64 { return &p.UsedCPUs }, false),
		both(func(p shardedPoint) *float64 { return new(float64(p.Memory >> 20)) }, false), len(r.pieces))
}

// shardedRows are those of all services, in the order of the study.
func shardedRows(all []shardedPiece) (rows []shardedRow) {
	for _, name := range shardedServices {
		of := slices.DeleteFunc(slices.Clone(all), func(p shardedPiece) bool { return p.Service != name })
		for _, way := range shardedWays {
			if len(of) > 0 {
				rows = append(rows, shardedRow{of, way})
			}
		}
	}
	return rows
}
