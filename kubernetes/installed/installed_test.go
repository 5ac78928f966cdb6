package installed

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

const series = `unthrottle_container_throttled_periods_total{container="burner",id="/kubepods/x",namespace="ns",pod="test"} %d` + "\n"

// The node's agent is asked until it has throttled periods of the pod by its name; agents of other nodes are not.
func TestThrottled(t *testing.T) {
	pages := []string{"", fmt.Sprintf(strings.Replace(series, "burner", "other", 1), 3), fmt.Sprintf(series, 0), fmt.Sprintf(series, 7)}
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page := pages[min(asked, len(pages)-1)]
		asked++
		if page == "" {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		fmt.Fprint(w, page)
	}))
	defer server.Close()
	host, text, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	agent := func(name, node, ip string) *core.Pod {
		return &core.Pod{ObjectMeta: meta.ObjectMeta{Name: name, Namespace: "unthrottle", Labels: map[string]string{"app": "agent"}},
			Spec: core.PodSpec{NodeName: node, Containers: []core.Container{{Name: "agent",
				Ports: []core.ContainerPort{{Name: metricsPort, ContainerPort: int32(port)}}}}}, Status: core.PodStatus{PodIP: ip}}
	}
	client := fake.NewClientset(agent("there", "b", "192.0.2.1"), agent("here", "a", host))
	p := Pod{Namespace: "ns", Name: "test", Container: "burner", Node: "a"}
	periods, name, err := Throttled(t.Context(), client, "unthrottle", "app=agent", p, time.Millisecond)
	if periods != 7 || name != "here" || err != nil || asked != len(pages) {
		t.Errorf("got %d by %q after %d answers, %v", periods, name, asked, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	p.Node = "c"
	if _, _, err := Throttled(ended, client, "unthrottle", "app=agent", p, time.Hour); err == nil ||
		!strings.Contains(err.Error(), "node c: no agent runs there") {
		t.Errorf("a node without an agent: %v", err)
	}
}
