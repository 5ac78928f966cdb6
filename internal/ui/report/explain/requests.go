package explain

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/unthrottle/unthrottle/internal/explain/requests"
	"github.com/unthrottle/unthrottle/internal/objective"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/page"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/timeline"
)

// kindText is a kind of a request's time with its letter in a timeline, its text and its colour on a page.
type kindText struct {
	kind   requests.Kind
	letter rune // 0: that of stopped time
	text   string
	class  string
}

var kindTexts = []kindText{
	{requests.Ran, 'r', "ran", "r2"},
	{requests.Busy, 'b', "its thread was busy with others", "r6"},
	{requests.Waited, 'w', "waited for a CPU", "r3"},
	{requests.Stopped, 0, "stopped", "r0"},
	{requests.Slept, '.', "slept", "r4"},
	{requests.Unseen, '?', "not seen", "rx"},
}

func kindOf(k requests.Kind) kindText {
	return kindTexts[max(0, slices.IndexFunc(kindTexts, func(t kindText) bool { return t.kind == k }))]
}

// ofThreads says why responses are those of threads; "": the requests were seen, or nothing was measured.
func ofThreads(r *requests.Requests) string {
	switch {
	case r == nil || r.Enough():
		return ""
	case !r.Seen:
		return "the recording has no reads and writes of sockets, which kernels since 6.3 show"
	case r.OneWay():
		return fmt.Sprintf("%s of clients outside were read, and hardly any was answered on its connection or socket",
			text.Count(r.Unanswered, "request"))
	case r.Count == 0:
		return "no requests of clients outside were seen"
	}
	return fmt.Sprintf("it answered %s of clients outside, and %d are needed", text.Count(r.Count, "request"), requests.Least)
}

// requestsText are the figures of all requests in one sentence.
func requestsText(r *requests.Requests) string {
	q, high := objective.P99, r.P99
	if r.Quantile > 0 && r.Quantile < q { // too few tell it: what fix would judge by
		q, high = r.Quantile, r.High
	}
	s := fmt.Sprintf("%s answered, p50 %s, %s %s, longest %s; from the data's arrival at the socket to the last write",
		text.Count(r.Count, "request"), text.Duration(r.P50), objective.InWords(q), text.Duration(high), text.Duration(r.Max))
	if r.Unanswered > 0 {
		s += fmt.Sprintf("; %d more had no answer at the end", r.Unanswered)
	}
	if r.Merged*10 > r.Count {
		s += fmt.Sprintf("; %d were sent before the answer to another one on their connection, and do not count", r.Merged)
	}
	return s
}

// requestParts says what a request's time was, the longest part first, and whose quotas stopped it.
func requestParts(q *requests.Request) string {
	type part struct {
		text string
		took time.Duration
	}
	var parts []part
	for _, s := range q.Segments {
		name := kindOf(s.Kind).text
		switch {
		case s.Kind == requests.Stopped && s.Own:
			name += " by its own quota"
		case s.Kind == requests.Stopped:
			name += " by the quota of " + shownText(s.Quota)
		}
		i := slices.IndexFunc(parts, func(p part) bool { return p.text == name })
		if i < 0 {
			i = len(parts)
			parts = append(parts, part{text: name})
		}
		parts[i].took += s.Length
	}
	slices.SortStableFunc(parts, func(x, y part) int { return int(y.took - x.took) })
	var texts []string
	for _, p := range parts {
		texts = append(texts, p.text+" "+text.Duration(p.took))
	}
	return strings.Join(texts, ", ") + requestPools(q)
}

// requestPools names the pools whose threads worked on a request, in their order.
func requestPools(q *requests.Request) string {
	const most = 4
	var names []string
	for _, s := range q.Segments {
		if s.Pool == "" || slices.Contains(names, shownName(s.Pool)) {
			continue
		}
		if len(names) == most {
			names = append(names, "…")
			break
		}
		names = append(names, shownName(s.Pool))
	}
	if len(names) == 0 {
		return ""
	}
	return " (" + strings.Join(names, ", ") + ")"
}

// requestLine is a request's timeline in n characters, each for the kind that took most of its stretch.
func requestLine(q *requests.Request, n int, held rune) []rune {
	line := make([]rune, n)
	took := max(1, q.Took)
	for i := range line {
		from, to := took*time.Duration(i)/time.Duration(n), took*time.Duration(i+1)/time.Duration(n)
		sums := map[requests.Kind]time.Duration{}
		most := requests.Ran
		for _, s := range q.Segments {
			if d := min(to, s.Begin+s.Length) - max(from, s.Begin); d > 0 {
				if sums[s.Kind] += d; sums[s.Kind] > sums[most] {
					most = s.Kind
				}
			}
		}
		if line[i] = kindOf(most).letter; line[i] == 0 {
			line[i] = held
		}
	}
	return line
}

// requests writes the slowest requests, each with its timeline.
func (x *view) requests() {
	r := x.e.Requests
	if !r.Enough() {
		return
	}
	held := timeline.New(x.ascii).Held
	x.Section("Requests: " + requestsText(r) + ".")
	if len(r.Slowest) == 0 {
		return
	}
	var legend []string
	for _, k := range kindTexts {
		letter := k.letter
		if letter == 0 {
			letter = held
		}
		legend = append(legend, string(letter)+" "+k.text)
	}
	x.Hanging("", "The slowest, each from its arrival: "+strings.Join(legend, ", "))
	cells := 40
	if x.narrow() {
		cells = 16
	}
	for i := range r.Slowest {
		q := &r.Slowest[i]
		line := ""
		for _, c := range requestLine(q, cells, held) {
			if c == held {
				line += x.Paint(page.Red, string(c))
			} else {
				line += string(c)
			}
		}
		x.Line(fmt.Sprintf("%8.1f ms %s %s", float64(q.Begin)/1e6, line, text.Duration(q.Took)))
		x.Hanging("            ", requestParts(q))
	}
}
