package agent

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/unthrottle/unthrottle/internal/agent/answers"
	"github.com/unthrottle/unthrottle/internal/container"
)

// What came of the last trials of pods is answered, bounded and escaped; a unit of systemd has nobody to be told.
func TestTrialEnds(t *testing.T) {
	a := &agent{}
	pod := container.Container{Name: "shop/cart-1/app", ContainerName: "app\x1b[2J", Namespace: "shop", Pod: "cart-1", PodUID: "uid"}
	a.spreadEnds.add(container.Container{Name: "nginx.service"}, answers.TrialKept, "", start)
	for i := range answers.MaxTrialEnds + 3 {
		a.spreadEnds.add(pod, answers.TrialKept, fmt.Sprintf("burst 50ms: %d\x1b[2J", i), start)
	}
	w := httptest.NewRecorder()
	a.trialsPage(w, nil)
	var got answers.Trials
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || got.Schema != answers.TrialsSchema ||
		len(got.Ended) != answers.MaxTrialEnds {
		t.Fatalf("%v: %d ends of %s", err, len(got.Ended), got.Schema)
	}
	if e := got.Ended[0]; e.Pod != "cart-1" || !strings.HasPrefix(e.Container, "app") || e.UID != "uid" || !e.At.Equal(start) ||
		!strings.HasPrefix(e.Says, "burst 50ms: 3") || strings.Contains(e.Says+e.Container, "\x1b") {
		t.Errorf("%+v", e)
	}
}
