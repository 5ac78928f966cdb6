package status

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/page"
)

func TestLends(t *testing.T) {
	var crowd []string
	for i := range 20 {
		crowd = append(crowd, fmt.Sprintf("/batch/%d", i))
	}
	names := map[string]string{"/web": "web", "/a": "red \x1b[31m", "/b": "batch"}
	var b strings.Builder
	err := Lends(&b, []remedy.Sharing{
		{Target: "/web", CPUs: cpuset.New(2, 3), To: []string{"/a", "/b"}},
		{Target: "/db", CPUs: cpuset.New(4)},
		{Target: "/web", CPUs: cpuset.New(5), To: []string{"/b"}, Revoked: "7"},
		{Target: "/web", CPUs: cpuset.New(6), To: crowd},
	}, names, page.Style{Width: page.Unbounded})
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Split(b.String(), "\n")
	for i, want := range []string{
		"lends: web its CPUs 2-3, while they idle, to red", "lends: /db its CPUs 4, to none: no secondary may have them",
		"lends: web its CPUs 5, revoked: on trial, or lending slowed it", "/batch/7, 12 more",
	} {
		if !strings.Contains(got[i], want) || strings.Contains(got[i], "\x1b") {
			t.Errorf("line %d: %q, want %q in it", i, got[i], want)
		}
	}
}
