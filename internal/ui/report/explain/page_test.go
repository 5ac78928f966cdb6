package explain

import (
	"bytes"
	"html"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/sim/forecast"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/webpage"
)

func writtenHTML(t *testing.T, e diagnose.Explanation) string {
	t.Helper()
	var b bytes.Buffer
	if err := HTML(&b, e, webpage.Origin{Host: "node-7", Kernel: "6.18.44", Version: "v1"},
		Options{NotForecast: "the recording has no responses", Next: "sudo unthrottle fix shop/cart"}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

var htmlTags = regexp.MustCompile(`(?s)<style>.*?</style>|<[^>]*>`)

func TestHTMLHasAllOfTheText(t *testing.T) {
	s := writtenHTML(t, example())
	inOrder(t, strings.ReplaceAll(htmlTags.ReplaceAllString(s, " "), "&#43;", "+"),
		"shop/cart", "recorded 2026-11-21 03:12:00 UTC", "for 10 s", "node-7", "6.18.44", "unthrottle v1",
		"32 threads of pool http-worker-* ran 11 wide", "7 events were lost", "Next step", "sudo unthrottle fix shop/cart",
		"stopped", "5.02 s", "throttled periods", "62", "mean use", "1.40", "widest", "13", "9.25",
		"burst", "pool", "CPUs in use at once", "CPUs wanted at once", "The worst stretch", "throttled",
		"Who spent it", "http-worker-*", "Akka HTTP", "40 % more", "The slowest requests", "2412 requests answered",
		"stopped by its own quota 90 ms", "Where waiting went", "own quota: 91.2 s", "batch/etl", "throttled itself",
		"passed", "not judged", "failed", "3.400 % off", "Not measured", "steal: /proc/stat")
}

// The page has a row for each remedy, with why it is not recommended.
func TestHTMLHasTheForecast(t *testing.T) {
	f := &forecast.Forecast{
		Path: "/kubepods/pod7/cart", Window: 10 * time.Second, Limit: 2, Judged: &forecast.Judged{Pool: "http-<b>", Quantile: 0.99},
		Rows: []forecast.Row{
			{Remedy: forecast.Remedy{Name: forecast.None}, Judged: new(110.0),
				Figures: forecast.Figures{Stopped: 5 * time.Second}, Reserved: new(2.0)},
			{Remedy: forecast.Remedy{Name: forecast.Burst, Burst: 200 * time.Millisecond}, Judged: new(42.0),
				JudgedRange: &forecast.Range{Low: 41, High: 44}, Reserved: new(2.0)},
			{Remedy: forecast.Remedy{Name: forecast.Pin, CPUs: 2}, Refused: "too few CPUs"},
			{Remedy: forecast.Remedy{Name: forecast.Raise, Factor: 2}, Judged: new(42.0)},
		},
	}
	c := &policy.Choice{Answer: policy.AnswerRemedy, Row: 1, Why: "burst",
		Not: []policy.NotChosen{{Row: 3, Why: "more CPU than the limit"}}}
	var b bytes.Buffer
	if err := HTML(&b, example(), webpage.Origin{}, Options{Recommended: c, Forecast: f}); err != nil {
		t.Fatal(err)
	}
	if name := os.Getenv("UNTHROTTLE_EXPLAIN_HTML"); name != "" { // to look at it
		if err := os.WriteFile(name, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	inOrder(t, html.UnescapeString(htmlTags.ReplaceAllString(b.String(), " ")),
		"cgroup /kubepods/pod7/cart", "The whole recording", "0 s", "What each remedy would do", "p99 of pool http-<b>", "p99 ms",
		"leave it", "110", "500 ms/s", "burst 200ms", "42.0", "41.0 to 44.0", "recommended", "pin",
		"not possible: too few CPUs", "raise", "more CPU than the limit",
		"CPUs in use at once", "Words on this page")
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
