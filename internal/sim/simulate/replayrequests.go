package simulate

import "time"

// answer ends a request. Only its first answer counts: a thread that begins again repeats its steps.
func (r *replayer) answer(request int, now time.Duration) {
	if request >= 0 && request < len(r.answered) && r.answered[request] == never {
		r.answered[request] = now
	}
}

// tookUntil returns how long each request took. One without an answer has taken until the end. One whose thread did its
// work before the recorded arrival took no time.
func (r *replayer) tookUntil(end time.Duration) []time.Duration {
	took := make([]time.Duration, len(r.Requests))
	for i, at := range r.Requests {
		until := r.answered[i]
		if until == never {
			until = end
		}
		took[i] = max(0, until-at)
	}
	return took
}
