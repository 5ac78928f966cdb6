package simulate

import "time"

// answer ends a request. Only its first answer counts: a thread that begins again repeats its steps.
func (r *replayer) answer(request int, now time.Duration) {
	if request >= 0 && request < len(r.answered) && r.answered[request] == never {
		r.answered[request] = now
	}
}

// NotSent is the time of a request that was never sent.
const NotSent time.Duration = -1

// tookUntil returns how long each request took. One without an answer has taken until the end. One that no StepRead holds
// back, and that was answered before it arrived, took no time.
func (r *replayer) tookUntil(end time.Duration) []time.Duration {
	took := make([]time.Duration, len(r.Requests))
	for i, q := range r.Requests {
		at, until := q.At, r.answered[i]
		if q.After > 0 {
			before := r.answered[i-int(q.After)]
			if before == never {
				took[i] = NotSent
				continue
			}
			at = max(at, before+q.Gap)
		}
		if until == never {
			until = end
		}
		took[i] = max(0, until-at)
	}
	return took
}
