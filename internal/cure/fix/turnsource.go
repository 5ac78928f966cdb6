package fix

import (
	"context"
	"fmt"
	"time"

	"github.com/unthrottle/unthrottle/internal/cure/trial"
	"github.com/unthrottle/unthrottle/internal/cure/verdict"
)

// OfLatencies says that the user's own latencies judged a trial: see Trial.Of.
const OfLatencies = "latencies"

// mostUnanswered calls of the latency source that fail one after the other end a trial.
const mostUnanswered = 2

// asked puts what the user's latency source says of a turn in the place of what was recorded. That counts beside it with Options.Both.
func (t *turns) asked(ctx context.Context, since time.Time, recorded trial.Measured) (m trial.Measured, err error) {
	r := t.r
	from := r.now()
	m = recorded
	if m.Judged = (verdict.Requests{}); !r.o.Both {
		m.Others, m.Ended, m.Late = nil, "", 0
	}
	answer, err := r.env.Latencies(ctx, since)
	t.used += r.now().Sub(from)
	if t.unanswered++; err != nil && (ctx.Err() != nil || t.unanswered >= mostUnanswered) {
		return m, &NotMeasured{fmt.Errorf("in round %d: %w", t.rounds, err)}
	}
	if err != nil {
		r.say("round %d, the latency source did not answer, and the turn does not count: %v", t.rounds, err)
		return m, nil
	}
	if t.unanswered = 0; len(answer.MS) == 0 {
		return m, nil
	}
	if answer.Began == nil && t.answer != nil {
		if why := verdict.Stale(t.answer, answer.MS); why != "" {
			return m, &NotMeasured{fmt.Errorf("in round %d: %s", t.rounds, why)}
		}
	}
	t.answer = answer.MS
	window := r.now().Sub(since)
	if r.o.LookBack > 0 {
		window = r.o.LookBack
	}
	m.Judged = verdict.Requests{Window: window, TookMs: answer.MS, BeganMs: sinceMs(since, answer.Began)}
	if answer.Began == nil { // they came in that order
		m.Judged.BeganMs = make([]float64, len(answer.MS))
		for i := range answer.MS {
			m.Judged.BeganMs[i] = ms(window) * float64(i) / float64(len(answer.MS))
		}
	}
	if r.o.Both {
		m.Others = append(recorded.Others, recorded.Judged)
	}
	return m, nil
}
