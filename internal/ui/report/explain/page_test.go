package explain

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/ui/report/webpage"
)

func writtenHTML(t *testing.T, e diagnose.Explanation) string {
	t.Helper()
	var b bytes.Buffer
	if err := HTML(&b, e, webpage.Origin{Host: "node-7", Kernel: "6.18.44", Version: "v1"}, Options{NotForecast: "the recording has no responses", Next: "sudo unthrottle fix shop/cart"}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

var htmlTags = regexp.MustCompile(`(?s)<style>.*?</style>|<[^>]*>`)

func TestHTMLHasAllOfTheText(t *testing.T) {
	s := writtenHTML(t, example())
	if name := os.Getenv("UNTHROTTLE_EXPLAIN_HTML"); name != "" { // to look at it
		if err := os.WriteFile(name, []byte(s), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	inOrder(t, strings.ReplaceAll(htmlTags.ReplaceAllString(s, " "), "&#43;", "+"),
		"shop/cart", "recorded 2026-11-21 03:12:00 UTC", "for 10 s", "node-7", "6.18.44", "unthrottle v1", "32 threads of pool http-worker-* ran 11 wide", "7 events were lost", "Next step", "sudo unthrottle fix shop/cart",
		"stopped", "5.02 s", "throttled periods", "62", "mean use", "1.40", "widest", "13", "9.25",
		"burst", "pool", "CPUs in use at once", "CPUs wanted at once", "The worst stretch", "throttled",
		"Who spent it", "http-worker-*", "Akka HTTP", "40 % more", "The slowest requests", "2412 requests answered", "stopped by its own quota 90 ms", "Where waiting went", "own quota: 91.2 s", "batch/etl", "throttled itself",
		"passed", "not judged", "failed", "3.400 % off", "Not measured", "steal: /proc/stat")
}

// The page loads nothing and runs nothing, whatever names strangers choose.
func TestHTMLIsSelfContained(t *testing.T) {
	for _, e := range []diagnose.Explanation{example(), hostileExplanation(), {}} {
		s := writtenHTML(t, e)
		for _, never := range []string{"<script", "http://", "https://", "url(", "@import", "src=", "href=", "ZgotmplZ", "\x1b", "\u202e"} {
			if strings.Contains(s, never) {
				t.Errorf("%q in the page", never)
			}
		}
	}
	if s := writtenHTML(t, hostileExplanation()); !strings.Contains(s, "&lt;script&gt;") {
		t.Error("the hostile name is not shown at all")
	}
}
