package bench

import (
	"fmt"
	"html/template"
	"math"
	"slices"

	"github.com/unthrottle/unthrottle/internal/experiment/capacity"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/figure"
)

// axis maps values to a drawing's coordinates.
type axis struct {
	least, most float64
	from, to    float64 // coordinates
	log         bool
}

func (a axis) at(v float64) float64 {
	least, most := a.least, a.most
	if a.log {
		v, least, most = math.Log(v), math.Log(least), math.Log(most)
	}
	return a.from + (a.to-a.from)*(v-least)/(most-least)
}

// ticks of a linear axis: about five round numbers.
func (a axis) ticks() []float64 {
	step := math.Pow(10, math.Floor(math.Log10((a.most-a.least)/4)))
	for _, m := range []float64{5, 2} {
		if (a.most-a.least)/(step*m) >= 3 {
			step *= m
			break
		}
	}
	var all []float64
	for v := math.Ceil(a.least/step) * step; v <= a.most; v += step {
		all = append(all, v)
	}
	return all
}

// decades are the ticks of a logarithmic axis: 1, 2 and 5 of each.
func (a axis) decades() []float64 {
	var all []float64
	for d := math.Pow(10, math.Floor(math.Log10(a.least))); d <= a.most; d *= 10 {
		for _, m := range []float64{1, 2, 5} {
			if v := d * m; v >= a.least && v <= a.most {
				all = append(all, v)
			}
		}
	}
	return all
}

// curves draws the quantile against the load, a curve per remedy.
func curves(r capacity.Result) string {
	const width, height, left, right, top, bottom = 480, 320, 48, 14, 28, 46
	x := axis{most: 1, from: left, to: width - right}
	y := axis{least: r.BoundMs / 2, most: r.BoundMs * 2, from: height - bottom, to: top, log: true}
	for _, m := range r.Remedies {
		for _, s := range m.Curve {
			x.most = max(x.most, s.Load*1.05)
			if s.At != nil {
				y.least, y.most = min(y.least, max(0.05, *s.At)/1.2), max(y.most, *s.At*1.2)
			}
		}
	}
	var d svg
	d.begin(width, height, "latency against load")
	for _, v := range x.ticks() {
		d.line(x.at(v), top, x.at(v), height-bottom, svgGrid)
		d.text(x.at(v), height-bottom+18, "middle", figure.Trimmed(v))
	}
	for _, v := range y.decades() {
		d.line(left, y.at(v), width-right, y.at(v), svgGrid)
		d.text(left-8, y.at(v)+4, "end", figure.Trimmed(v))
	}
	d.line(left, y.at(r.BoundMs), width-right, y.at(r.BoundMs), svgMark)
	d.text(width-right-2, y.at(r.BoundMs)-5, "end", "objective")
	d.text((left+width-right)/2, height-6, "middle", "requests per second")
	d.text(4, 13, "start", fmt.Sprintf("p%s, ms", figure.Trimmed(100*r.Quantile)))
	for i, m := range r.Remedies {
		curve(&d, m, i, x, y)
	}
	d.add("</svg>")
	return d.String()
}

func curve(d *svg, m capacity.Remedy, i int, x, y axis) {
	path := ""
	for _, p := range medians(m.Curve) {
		verb := "L"
		if path == "" {
			verb = "M"
		}
		path += fmt.Sprintf("%s%.1f %.1f", verb, x.at(p[0]), y.at(p[1]))
	}
	d.add(`<g class="%s"><path d="%s" class="stroke"/>`, color(i), path)
	for _, s := range m.Curve {
		if s.At == nil {
			continue
		}
		missed := ""
		if !s.Met {
			missed = " missed"
		}
		d.add(`<circle cx="%.1f" cy="%.1f" r="3.5" class="point%s"><title>%s, %.0f/s: %s ms</title></circle>`,
			x.at(s.Load), y.at(max(0.05, *s.At)), missed, template.HTMLEscapeString(m.Remedy), s.Load, figure.Trimmed(*s.At))
	}
	d.add("</g>")
}

// medians joins samples whose loads are within 5 % of each other into one:
// median load, median latency.
func medians(curve []capacity.Sample) [][2]float64 {
	var joined [][2]float64
	var loads, at []float64
	flush := func() {
		if len(loads) > 0 {
			slices.Sort(at)
			joined = append(joined, [2]float64{loads[len(loads)/2], max(0.05, at[len(at)/2])})
			loads, at = nil, nil
		}
	}
	for _, s := range curve { // sorted by load
		if s.At == nil {
			continue
		}
		if len(loads) > 0 && s.Load > 1.05*loads[0] {
			flush()
		}
		loads, at = append(loads, s.Load), append(at, *s.At)
	}
	flush()
	return joined
}

// latencies draws one point's latencies.
func latencies(r capacity.Result, name string, p capacity.Point, i int) string {
	const width, height, left, right, top, bottom = 430, 230, 56, 18, 30, 40
	x := axis{least: 0.1, most: 1000, from: left, to: width - right, log: true}
	highest, sum := 0.0, 0.0
	for _, b := range p.Histogram {
		sum += float64(b.Count)
	}
	for _, b := range p.Histogram {
		highest = max(highest, float64(b.Count)/max(1, sum))
	}
	// A logarithmic height: what counts here is the thin tail.
	y := axis{least: 1e-4, most: max(1e-3, highest*1.3), from: height - bottom, to: top, log: true}
	var d svg
	d.begin(width, height, "latencies of "+name)
	d.named(4, 14, "start", "name", fmt.Sprintf("%s: p99 %s ms, longest %s ms", name, figure.Fixed(p.P99, 1), figure.Fixed(p.Max, 0)))
	for _, v := range []float64{0.1, 1, 10, 100, 1000} {
		d.line(x.at(v), top, x.at(v), height-bottom, svgGrid)
		d.text(x.at(v), height-bottom+15, "middle", figure.Trimmed(v))
	}
	for _, v := range []float64{1e-4, 1e-3, 1e-2, 1e-1} {
		if v <= y.most {
			d.line(left, y.at(v), width-right, y.at(v), svgGrid)
			d.text(left-4, y.at(v)+4, "end", figure.Trimmed(100*v)+" %")
		}
	}
	for _, b := range p.Histogram {
		share := float64(b.Count) / max(1, sum)
		from, to := max(x.least, b.FromMs), min(x.most, b.ToMs)
		if share < y.least || to <= from {
			continue
		}
		d.add(`<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" class="%s fill"><title>%s to %s ms: %d</title></rect>`, x.at(from), y.at(share),
			max(0.5, x.at(to)-x.at(from)-1), y.at(y.least)-y.at(share), color(i), figure.Trimmed(b.FromMs), figure.Trimmed(b.ToMs), b.Count)
	}
	if r.BoundMs > x.least && r.BoundMs < x.most {
		d.line(x.at(r.BoundMs), top, x.at(r.BoundMs), height-bottom, svgMark)
	}
	d.text((left+width-right)/2, height-4, "middle", "ms")
	d.add("</svg>")
	return d.String()
}

// Sizes of a plot with a row for each remedy, in its own units.
const (
	rowHeight  = 34
	rowsLeft   = 92
	rowsTop    = 10
	rowsBottom = 34
)

// loadPlot draws the highest load of each remedy, with its spread.
func loadPlot(r capacity.Result) string {
	const width, right = 480, 138
	height := rowsTop + rowHeight*len(r.Remedies) + rowsBottom
	x := axis{most: 1, from: rowsLeft, to: width - right}
	for _, m := range r.Remedies {
		for _, l := range m.Loads {
			x.most = max(x.most, l*1.02)
		}
	}
	var d svg
	d.begin(width, height, "highest load by remedy")
	for _, v := range x.ticks() {
		d.line(x.at(v), rowsTop, x.at(v), float64(height-rowsBottom), svgGrid)
		d.text(x.at(v), float64(height-rowsBottom)+18, "middle", figure.Trimmed(v))
	}
	for i, m := range r.Remedies {
		y := float64(rowsTop + rowHeight*i + rowHeight/2)
		d.named(rowsLeft-10, y+4, "end", "name", m.Remedy)
		if m.MaxLoad == nil {
			d.text(rowsLeft+6, y+4, "start", "no load met the objective")
			continue
		}
		d.add(`<g class="%s"><title>%s: %s, %s</title>`, color(i), template.HTMLEscapeString(m.Remedy), highestLoad(m), spread(m.Loads))
		d.line(x.at(slices.Min(m.Loads)), y, x.at(slices.Max(m.Loads)), y, "stroke")
		d.add(`<circle cx="%.1f" cy="%.1f" r="5" class="point"/></g>`, x.at(*m.MaxLoad), y)
		label := highestLoad(m) + " /s"
		if m.Ratio != nil {
			label += fmt.Sprintf(", %.2fx", *m.Ratio)
		}
		d.text(width-right+12, y+4, "start", label)
	}
	d.add("</svg>")
	return d.String()
}

// quantiles draws p50, p90, p99 and the longest of each remedy at its point i.
func quantiles(r capacity.Result, i int) string {
	const width, right = 430, 20
	height := rowsTop + rowHeight*len(r.Remedies) + rowsBottom
	x := axis{least: r.BoundMs / 10, most: r.BoundMs * 2, from: rowsLeft, to: width - right, log: true}
	for _, m := range r.Remedies {
		if i < len(m.Points) {
			for _, v := range []*float64{m.Points[i].P50, m.Points[i].Max} {
				if v != nil {
					x.least, x.most = min(x.least, max(0.05, *v)/1.3), max(x.most, *v*1.3)
				}
			}
		}
	}
	var d svg
	d.begin(width, height, "latencies by remedy")
	for _, v := range x.powers() {
		d.line(x.at(v), rowsTop, x.at(v), float64(height-rowsBottom), svgGrid)
		d.text(x.at(v), float64(height-rowsBottom)+18, "middle", figure.Trimmed(v))
	}
	d.line(x.at(r.BoundMs), rowsTop, x.at(r.BoundMs), float64(height-rowsBottom), svgMark)
	for k, m := range r.Remedies {
		y := float64(rowsTop + rowHeight*k + rowHeight/2)
		d.named(rowsLeft-10, y+4, "end", "name", m.Remedy)
		if i >= len(m.Points) || m.Points[i].P50 == nil || m.Points[i].Max == nil {
			d.text(rowsLeft+6, y+4, "start", "not measured")
			continue
		}
		p := m.Points[i]
		at := func(v float64) float64 { return x.at(max(0.05, v)) }
		d.add(`<g class="%s"><title>%s: p50 %s, p90 %s, p99 %s, longest %s ms</title>`, color(k), template.HTMLEscapeString(m.Remedy),
			figure.Fixed(p.P50, 1), figure.Fixed(p.P90, 1), figure.Fixed(p.P99, 1), figure.Fixed(p.Max, 0))
		d.line(at(*p.P50), y, at(*p.Max), y, "stroke")
		d.line(at(*p.Max), y-7, at(*p.Max), y+7, "stroke")
		for _, v := range []*float64{p.P50, p.P90, p.P99} {
			if v != nil {
				d.add(`<circle cx="%.1f" cy="%.1f" r="4.5" class="point"/>`, at(*v), y)
			}
		}
		d.add("</g>")
	}
	d.add("</svg>")
	return d.String()
}

// powers are the ticks of a logarithmic axis that has little room: powers of ten.
func (a axis) powers() []float64 {
	return slices.DeleteFunc(a.decades(), func(v float64) bool {
		exponent := math.Log10(v)
		return math.Abs(exponent-math.Round(exponent)) > 1e-9
	})
}
