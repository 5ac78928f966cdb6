package agent

import (
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"github.com/unthrottle/unthrottle/internal/agent/answers"
	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/text"
)

// spreadEnds are what came of the last trials of pods that were spread over hours. The acting goroutine adds, and requests read.
type spreadEnds struct {
	mu   sync.Mutex
	last []answers.TrialEnd
}

// add keeps what came of a container's trial; of one that is of no pod nobody is told.
func (e *spreadEnds) add(c container.Container, outcome, says string, at time.Time) {
	if c.PodUID == "" {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.last = append(e.last, answers.TrialEnd{Namespace: c.Namespace, Pod: c.Pod, UID: c.PodUID,
		Container: text.Sanitize(c.ContainerName, text.MaxName), At: at.UTC(), Outcome: outcome, Says: text.Shown(says)})
	if n := len(e.last) - answers.MaxTrialEnds; n > 0 {
		e.last = append(e.last[:0], e.last[n:]...)
	}
}

// trialsPage answers GET /trials.
func (a *agent) trialsPage(w http.ResponseWriter, _ *http.Request) {
	a.spreadEnds.mu.Lock()
	ended := append([]answers.TrialEnd{}, a.spreadEnds.last...)
	a.spreadEnds.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answers.Trials{Schema: answers.TrialsSchema, Version: answers.Version, Ended: ended})
}
