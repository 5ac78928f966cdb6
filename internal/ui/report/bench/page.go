package bench

import (
	"fmt"
	"html/template"
	"io"
	"strings"

	"github.com/unthrottle/unthrottle/internal/bench/capacity"
	"github.com/unthrottle/unthrottle/internal/ui/report/page"
)

// ServiceHTML writes a bench as one page that loads nothing: no script, no font, no
// picture.
func ServiceHTML(w io.Writer, r capacity.Result) error {
	loads, points := page.New(page.Style{Width: page.Unbounded}, 0, 0), page.New(page.Style{Width: page.Unbounded}, 0, 0)
	writeLoads(loads, r)
	writePoints(points, r)
	shown := servicePage{
		Title: "unthrottle bench service", Head: head(r), Verdict: verdict(r), Notes: notes(r),
		Loads: loads.String(), Points: points.String(),
		Curve: template.HTML(curves(r)), // our own drawing: numbers, and names that are escaped
	}
	if r.Shape != "" {
		shown.Title += " --shape " + r.Shape
	}
	for i, m := range r.Remedies {
		for _, p := range m.Points {
			if p.OfBest == shownLevel {
				shown.Histograms = append(shown.Histograms, template.HTML(latencies(r, m.Remedy, p, i)))
			}
		}
	}
	return serviceTemplate.Execute(w, shown)
}

// shownLevel is the point whose histograms are drawn.
const shownLevel = 0.8

type servicePage struct {
	Title, Head, Verdict string
	Notes                []string
	Loads, Points        string
	Curve                template.HTML
	Histograms           []template.HTML
}

var serviceTemplate = template.Must(template.New("bench").Parse(`<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{{.Title}}</title>
<style>
body{font:15px/1.5 system-ui,sans-serif;max-width:62rem;margin:2rem auto;padding:0 1rem;color:#1c2733;background:#fff}
h1{font-size:1.4rem}h2{font-size:1.1rem;margin-top:2rem}
pre{overflow-x:auto;font-size:12.5px;line-height:1.4;background:#f5f7f9;padding:.7rem 1rem;border-radius:4px}
svg{max-width:100%;height:auto}svg text{font:12px system-ui,sans-serif;fill:#445}
.grid{display:grid;grid-template-columns:repeat(auto-fill,minmax(19rem,1fr));gap:1rem}
.verdict{font-weight:600}
</style></head><body>
<h1>{{.Title}}</h1>
<p>{{.Head}}</p>
{{if .Verdict}}<p class="verdict">{{.Verdict}}</p>{{end}}
<h2>The highest load within the objective</h2>
<pre>{{.Loads}}</pre>
<h2>Latency against load</h2>
<p>Every step of the searches: the objective's quantile at that load. The lines join the medians of near loads; a hollow point missed the objective.</p>
{{.Curve}}
<h2>At the same loads</h2>
<pre>{{.Points}}</pre>
{{if .Histograms}}<h2>Latencies at 80 % of the best load</h2>
<p>The share of requests by latency. The dashed line is the objective's bound.</p>
<div class="grid">{{range .Histograms}}<div>{{.}}</div>{{end}}</div>{{end}}
<h2>Notes</h2>
<ul>{{range .Notes}}<li>{{.}}</li>{{end}}</ul>
</body></html>
`))

// colors that people with red-green blindness can tell apart (the palette of Okabe and
// Ito).
var colors = []string{"#000000", "#E69F00", "#56B4E9", "#CC79A7", "#D55E00", "#009E73", "#0072B2"}

func color(i int) string { return colors[i%len(colors)] }

// svg collects the elements of a drawing.
type svg struct{ strings.Builder }

func (s *svg) add(format string, args ...any) { fmt.Fprintf(s, format, args...) }

func (s *svg) text(x, y float64, anchor, text string) {
	s.add(`<text x="%.1f" y="%.1f" text-anchor="%s">%s</text>`, x, y, anchor, template.HTMLEscapeString(text))
}

func (s *svg) line(x1, y1, x2, y2 float64, style string) {
	s.add(`<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" %s/>`, x1, y1, x2, y2, style)
}

const (
	svgGrid = `stroke="#e3e7eb"`
	svgMark = `stroke="#888" stroke-dasharray="5 4"`
)
