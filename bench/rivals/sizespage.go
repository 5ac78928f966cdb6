package main

import (
	_ "embed"
	"fmt"
	"math"
	"slices"

	"github.com/unthrottle/unthrottle/test/study"
)

//go:embed sizes.md
var sizesText string

// sizedRows are all rounds of one service.
type sizedRows struct {
	pieces []sizedPiece
}

// Service, Load, Used and Rounds are what was measured; Made is when and where the first round was.
func (r sizedRows) Service() string  { return r.pieces[0].Service }
func (r sizedRows) Load() float64    { return r.pieces[0].Load }
func (r sizedRows) Used() float64    { return r.pieces[0].Used }
func (r sizedRows) Rounds() int      { return len(r.pieces) }
func (r sizedRows) Made() study.Made { return r.pieces[0].Made }

// over is a figure of a size over that of the same round without a limit, of each round that has both.
func (r sizedRows) over(name string, size float64, of func(*point) *float64) (ratios []float64) {
	at := func(p *sizedPiece, name string, size float64) *float64 {
		for i := range p.Points {
			if q := &p.Points[i]; q.Way == name && (q.Size == size || name == withoutLimit) {
				return of(&q.point)
			}
		}
		return nil
	}
	for i := range r.pieces {
		is, free := at(&r.pieces[i], name, size), at(&r.pieces[i], withoutLimit, 0)
		if is != nil && free != nil && *free > 0 {
			ratios = append(ratios, *is / *free)
		}
	}
	return ratios
}

// ratios are p99 and p50 of a size over those without a limit.
func (r sizedRows) ratios(name string, size float64) (p99, p50 study.Spread) {
	return study.SpreadOf(r.over(name, size, func(p *point) *float64 { return p.P99 })),
		study.SpreadOf(r.over(name, size, func(p *point) *float64 { return p.P50 }))
}

// keeps tells whether a size keeps the latency, which one does not whose answers were too few to tell, or failed; measured: at least one
// round has it.
func (r sizedRows) keeps(name string, size float64) (keeps, measured bool) {
	p99, p50 := r.ratios(name, size)
	rounds, requests, errors := 0, uint64(0), uint64(0)
	for _, p := range r.pieces {
		for _, q := range p.Points {
			if q.Way == name && q.Size == size {
				rounds, requests, errors = rounds+1, requests+q.Requests, errors+q.Errors
			}
		}
	}
	keeps = p99.Rounds == rounds && p50.Rounds == rounds && p99.Median <= keepsP99 && p50.Median <= keepsP50 &&
		float64(errors) <= mostErrors*float64(requests)
	return keeps && rounds > 0, rounds > 0
}

// least is the smallest size of a way that keeps the latency, as all larger ones do; 0: none does, of those measured.
func (r sizedRows) least(w way) (least float64) {
	for _, size := range slices.Backward(sizesOf(w, r.Used(), r.host())) {
		keeps, measured := r.keeps(w.name, size)
		if measured && !keeps {
			break
		}
		if measured {
			least = size
		}
	}
	return least
}

// host is how many CPUs services share: the size that no limit has.
func (r sizedRows) host() int {
	for _, p := range r.pieces[0].Points {
		if p.Way == withoutLimit {
			return int(p.Size)
		}
	}
	return 1
}

// Full is which part of the least size of a way the service uses, in percent: above it, it does not keep the latency. "-": no size does.
func (r sizedRows) Full(w way) string {
	least := r.least(w)
	if least == 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f %%", 100*r.Used()/least)
}

// Least are the cells of the least size of each way, in CPUs, with its part of the quota's; then of what part of its limit the service
// uses there, under the quota and under a burst in 1 s.
func (r sizedRows) Least() string {
	cells, quota := []any{"`" + r.Service() + "`", fmt.Sprintf("%.2f", r.Used())}, r.least(ways()[0])
	for _, w := range ways()[:len(ways())-1] {
		least := r.least(w)
		text := "none"
		if least > 0 {
			text = fmt.Sprintf("%.2f", least)
		}
		if least > 0 && quota > 0 && w.name != ways()[0].name {
			text += fmt.Sprintf(" (%+.0f %%)", 100*(least/quota-1))
		}
		cells = append(cells, text)
	}
	return study.Row(append(cells, r.Full(ways()[0]), r.Full(ways()[2]), r.Rounds())...)
}

// Table are the rows of all sizes: p99 and p50 of each way over those without a limit.
func (r sizedRows) Table() (rows []string) {
	var sizes []float64
	all := ways()[:len(ways())-1]
	for _, w := range all {
		sizes = append(sizes, sizesOf(w, r.Used(), r.host())...)
	}
	slices.Sort(sizes)
	for _, size := range slices.Compact(sizes) {
		cells := []any{fmt.Sprintf("%.2f", size), fmt.Sprintf("%.1f", size/math.Max(r.Used(), 0.01))}
		for _, w := range all {
			p99, p50 := r.ratios(w.name, size)
			text := "-"
			if p99.Rounds > 0 {
				text = fmt.Sprintf("%s (%s to %s); %s", short(p99.Median), short(p99.Low), short(p99.High), short(p50.Median))
			}
			if keeps, _ := r.keeps(w.name, size); keeps {
				text = "**" + text + "**"
			}
			cells = append(cells, text)
		}
		rows = append(rows, study.Row(cells...))
	}
	return rows
}

// Free is p99 and p50 without a limit, in ms.
func (r sizedRows) Free() string {
	var p99s, p50s []float64
	for _, p := range r.pieces {
		for _, q := range p.Points {
			if q.Way == withoutLimit && q.P99 != nil && q.P50 != nil {
				p99s, p50s = append(p99s, *q.P99), append(p50s, *q.P50)
			}
		}
	}
	p99, p50 := study.SpreadOf(p99s), study.SpreadOf(p50s)
	return fmt.Sprintf("p99 %s ms (%s to %s), p50 %s", short(p99.Median), short(p99.Low), short(p99.High), short(p50.Median))
}

// sizesPage is docs/results/sizes.md of all pieces.
func sizesPage(all []sizedPiece, sharded []shardedPiece) string {
	var rows []sizedRows
	for _, name := range sizedServices {
		if of := slices.DeleteFunc(slices.Clone(all), func(p sizedPiece) bool { return p.Service != name }); len(of) > 0 {
			rows = append(rows, sizedRows{of})
		}
	}
	return study.Fill(sizesText, nil, map[string]any{"Rows": rows, "KeepsP99": keepsP99, "KeepsP50": keepsP50, "Times": sizeTimes,
		"MostTimes": sizeTimes[len(sizeTimes)-1], "MostUsed": mostUsed, "MostErrors": 100 * mostErrors, "Ways": ways()[:len(ways())-1],
		"Neighbour": neighbourPerSecond, "Sharded": shardedRows(sharded), "ShardsLimit": shardsLimit, "ShardsUse": shardsUse})
}

// Name is for the page.
func (w way) Name() string { return w.name }
