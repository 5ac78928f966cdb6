package explain

import (
	"time"

	"github.com/unthrottle/unthrottle/internal/explain/requests"
	"github.com/unthrottle/unthrottle/internal/text"
)

// pageRequests are the slowest requests as a page draws them.
type pageRequests struct {
	Text   string
	Legend []kindLegend
	Width  int
	Rows   []pageRequest
}

type kindLegend struct{ Class, Text string }

// pageRequest is one request: its length is that of its line, the longest fills the width.
type pageRequest struct {
	Took, At, Parts string
	Segments        []pageSegment
}

type pageSegment struct {
	Class, Title string
	X, W         float64
}

const requestsWidth = 1000

// pageRequestsOf returns what the page draws of requests; nil: there are too few.
func pageRequestsOf(r *requests.Requests) *pageRequests {
	if !r.Enough() || len(r.Slowest) == 0 {
		return nil
	}
	p := &pageRequests{Text: requestsText(r), Width: requestsWidth}
	seen := map[requests.Kind]bool{}
	scale := requestsWidth / float64(max(1, r.Slowest[0].Took))
	for i := range r.Slowest {
		q := &r.Slowest[i]
		row := pageRequest{Took: text.Duration(q.Took), At: text.Duration(q.Begin.Round(time.Millisecond)), Parts: requestParts(q)}
		for _, s := range q.Segments {
			seen[s.Kind] = true
			k := kindOf(s.Kind)
			title := k.text + " " + text.Duration(s.Length)
			if s.Pool != "" {
				title += ": " + shownName(s.Pool)
			}
			if s.Quota != "" {
				title += ", quota of " + shownText(s.Quota)
			}
			row.Segments = append(row.Segments, pageSegment{k.class, title, float64(s.Begin) * scale, float64(s.Length) * scale})
		}
		p.Rows = append(p.Rows, row)
	}
	for _, k := range kindTexts {
		if seen[k.kind] {
			p.Legend = append(p.Legend, kindLegend{k.class, k.text})
		}
	}
	return p
}
