package main

import (
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"time"

	"github.com/unthrottle/unthrottle/internal/experiment/capacity"
	"github.com/unthrottle/unthrottle/internal/stats"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/test/study"
)

//go:embed page.md
var pageText string

// page is docs/results/service.md of all measured parts: its template calls what follows.
type page struct{ all []measured }

func markdown(measurements []measured) string {
	return study.Fill(pageText, template.FuncMap{
		"number":  func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) },
		"ms":      func(seconds float64) float64 { return 1000 * seconds },
		"percent": func(share float64) float64 { return 100 * share },
		"mean":    mean, "interval": interval, "list": list,
		"cpus": text.CPUs, "count": text.Count,
		"upper": func(s string) string { return strings.ToUpper(s[:min(1, len(s))]) + s[min(1, len(s)):] },
	}, page{measurements})
}

// Spike and Price are these parts; nil: not measured.
func (p page) Spike() *measured { return p.part("spike") }
func (p page) Price() *measured { return p.part("price") }

func (p page) part(name string) *measured {
	if i := slices.IndexFunc(p.all, func(m measured) bool { return m.Part == name && m.Failed == "" }); i >= 0 {
		return &p.all[i]
	}
	return nil
}

// Shapes are the parts with a shape.
func (p page) Shapes() []measured {
	return slices.DeleteFunc(slices.Clone(p.all), func(m measured) bool { return m.Shape == nil })
}

// Missing names the parts without a measurement.
func (p page) Missing() string {
	var missing []string
	for _, name := range parts() {
		if p.part(name) == nil {
			missing = append(missing, "`"+name+"`")
		}
	}
	for _, m := range p.all {
		if m.Failed != "" {
			missing = append(missing, fmt.Sprintf("%s failed: %s", m.Part, m.Failed))
		}
	}
	return strings.Join(missing, ", ")
}

// Remedies are the columns: those of the shape with the most, without the quota, which they are compared with.
func (p page) Remedies() (remedies []capacity.Remedy) {
	for _, m := range p.Shapes() {
		if len(m.Shape.Remedies) > len(remedies)+1 {
			remedies = m.Shape.Remedies[1:]
		}
	}
	return remedies
}

// Ratio is the load that a remedy carries, measured and forecast.
func (m measured) Ratio(remedy string) string {
	i := slices.IndexFunc(m.Shape.Remedies, func(r capacity.Remedy) bool { return r.Remedy == remedy })
	if i < 0 || m.Shape.Remedies[i].Ratio == nil {
		return "-"
	}
	r := m.Shape.Remedies[i]
	text, none, ended := study.Decimals(r.Ratio, 2), 0, m.ended(r)
	for _, load := range r.Loads {
		none += count(load == 0)
	}
	switch {
	case none > 0:
		text += fmt.Sprintf(", none met in %d of %d repeats", none, len(r.Loads))
	case ended > 0:
		text = fmt.Sprintf("at least %s: the search ended below in %d of %d repeats", text, ended, len(r.Loads))
	case *r.RatioLow > 1 || *r.RatioHigh < 1:
		text = "**" + text + "**"
	}
	if predicted := m.Predicted.ratio(remedy); predicted != nil {
		text += fmt.Sprintf(" (%.2f)", *predicted)
	}
	return text
}

// ended is how many repeats carried the most that a search tries.
func (m measured) ended(r capacity.Remedy) (n int) {
	carries, err := capacity.Carries(m.Shape.Shape, m.Shape.Limit)
	if err != nil || r.CPUsGranted == nil {
		return 0
	}
	for _, load := range r.Loads {
		n += count(load >= capacity.MostShare*carries**r.CPUsGranted/float64(m.Shape.Limit)*(1-1e-6))
	}
	return n
}

func count(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// Measured is when, where and how much of a part was measured.
func (m measured) Measured() string {
	extent := text.Count(m.Repeats, "repeat")
	if m.Steps > 0 {
		extent += " of each search, " + text.Count(m.Steps, "step")
	}
	if m.Step > 0 {
		extent += fmt.Sprintf(" of %v", m.Step)
	}
	return fmt.Sprintf("%s, on %s, in %s: scale %s, %s.", m.Machine, m.Day(), m.Took.Round(time.Second), m.Scale, extent)
}

// Fixed says in how many shapes the choice of fix is as good as the best single remedy; "": fix was measured in none.
func (p page) Fixed() string {
	good, of := 0, 0
	for _, m := range p.Shapes() {
		if compared, asGood := besideFix(*m.Shape); compared {
			of++
			if asGood {
				good++
			}
		}
	}
	if of == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %s", good, text.Count(of, "shape"))
}

// besideFix compares what fix chose with the best single remedy that apply knows and that grants no more CPU; false: fix was not
// measured. asGood: it carries as much, or their intervals meet.
func besideFix(r capacity.Result) (compared, asGood bool) {
	var fix, best *capacity.Remedy
	for i, m := range r.Remedies {
		switch {
		case m.Ratio == nil:
		case m.Remedy == capacity.Fix:
			fix = &r.Remedies[i]
		case m.Remedy == capacity.Quota || m.Remedy == capacity.Pools || *m.CPUsGranted > *r.Remedies[0].CPUsGranted:
		case best == nil || *m.Ratio > *best.Ratio:
			best = &r.Remedies[i]
		}
	}
	if fix == nil || best == nil {
		return false, false
	}
	return true, *fix.Ratio >= *best.Ratio || *fix.RatioHigh >= *best.RatioLow
}

func mean(r *stats.Ratio) string {
	if r == nil {
		return "-"
	}
	return fmt.Sprintf("%.2f", r.Mean)
}

func interval(r *stats.Ratio) string {
	if r == nil {
		return "-"
	}
	return fmt.Sprintf("%.2f to %.2f", r.Low, r.High)
}

func list(values []float64) string {
	var texts []string
	for _, v := range values {
		texts = append(texts, strconv.FormatFloat(v, 'f', 1, 64))
	}
	return strings.Join(texts, ", ")
}
