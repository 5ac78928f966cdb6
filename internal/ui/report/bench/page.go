package bench

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"
	"time"

	"github.com/unthrottle/unthrottle/internal/experiment/capacity"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/figure"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/webpage"
)

//go:embed page.html
var pageHTML string

var serviceTemplate = webpage.Template("bench", pageHTML)

// servicePage is what the template shows.
type servicePage struct {
	Head             webpage.Head
	About, Verdict   string
	Level            string // class of the verdict
	Noisy            string // the remedies whose figures others disturbed; "": none
	Notes            []string
	Legend           []key
	LoadPlot, Curves template.HTML
	Levels           []level
	Loads, Responses grid
	Costs            grid
	CostsKnown       bool
	Histograms       []template.HTML
}

// key is a remedy with the class of its colour.
type key struct{ Name, Class string }

// level is one load that all remedies were measured at.
type level struct {
	Name string
	Plot template.HTML
}

// ServiceHTML writes a bench as one page that loads nothing: no script, no font, no picture.
func ServiceHTML(w io.Writer, r capacity.Result, from webpage.Origin) error {
	from.Kernel = text.Shown(r.Kernel)
	shown := servicePage{
		Head:  webpage.Head{Title: "unthrottle bench service", Name: "How much load a service carries", From: from, Facts: facts(r)},
		About: head(r), Verdict: verdict(r), Notes: notes(r), Loads: loads(r), Responses: responses(r), Costs: costs(r),
		CostsKnown: r.URL == "",
		LoadPlot:   template.HTML(loadPlot(r)), Curves: template.HTML(curves(r)), // our own drawings: numbers, and names that are escaped
	}
	if shown.Level = "near"; strings.Contains(shown.Verdict, moreLoad) {
		shown.Level = "fine"
	}
	if shown.Verdict == "" {
		shown.Verdict = "No remedy could be compared with the quota."
	}
	var noisy []string
	for i, m := range r.Remedies {
		if m.Noisy {
			noisy = append(noisy, m.Remedy)
		}
		shown.Legend = append(shown.Legend, key{m.Remedy, color(i)})
		for _, p := range m.Points {
			if p.OfBest == shownLevel {
				shown.Histograms = append(shown.Histograms, template.HTML(latencies(r, m.Remedy, p, i)))
			}
		}
	}
	shown.Noisy = strings.Join(noisy, ", ")
	if len(r.Remedies) > 0 {
		for i, p := range r.Remedies[0].Points {
			shown.Levels = append(shown.Levels,
				level{fmt.Sprintf("%s of the best load, %.0f requests per second", ofBest(p), p.Load), template.HTML(quantiles(r, i))})
		}
	}
	return serviceTemplate.Execute(w, shown)
}

// shownLevel is the point whose histograms are drawn.
const shownLevel = 0.8

// facts are what stands beside the origin.
func facts(r capacity.Result) []webpage.Fact {
	facts := []webpage.Fact{{Name: "objective", Value: fmt.Sprintf("p%s within %s ms", figure.Trimmed(100*r.Quantile),
		figure.Trimmed(r.BoundMs))}}
	if r.Seconds > 0 {
		facts = append(facts, webpage.Fact{Name: "took", Value: text.Duration(time.Duration(r.Seconds) * time.Second)})
	}
	if r.URL != "" {
		return append(facts, webpage.Fact{Name: "of", Value: text.Shown(r.URL)})
	}
	return append(facts, webpage.Fact{Name: "shape", Value: r.Shape}, webpage.Fact{Name: "limit", Value: text.Count(r.Limit, "CPU")})
}

// colors are how many classes of colours the style has. People with red-green blindness can tell them apart (the
// palette of Okabe and Ito).
const colors = 7

// color is the class of a remedy's colour.
func color(i int) string { return fmt.Sprintf("c%d", i%colors) }

// svg collects the elements of a drawing.
type svg struct{ strings.Builder }

// begin begins a drawing that is so wide and high in its own units.
func (s *svg) begin(width, height int, label string) {
	s.add(`<svg viewBox="0 0 %d %d" role="img" aria-label="%s">`, width, height, template.HTMLEscapeString(label))
}

func (s *svg) add(format string, args ...any) { fmt.Fprintf(s, format, args...) }

func (s *svg) text(x, y float64, anchor, text string) { s.named(x, y, anchor, "", text) }

// named is a text with a class.
func (s *svg) named(x, y float64, anchor, class, text string) {
	s.add(`<text x="%.1f" y="%.1f" text-anchor="%s" class="%s">%s</text>`, x, y, anchor, class, template.HTMLEscapeString(text))
}

func (s *svg) line(x1, y1, x2, y2 float64, class string) {
	s.add(`<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" class="%s"/>`, x1, y1, x2, y2, class)
}

// Classes of lines.
const (
	svgGrid = "grid"
	svgMark = "mark"
)
