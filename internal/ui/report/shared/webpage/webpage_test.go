package webpage

import (
	"html"
	"strings"
	"testing"
)

func TestPage(t *testing.T) {
	var b strings.Builder
	page := Template("test", `{{template "head" .}}<p>{{template "prose" .Name}}</p>{{template "foot" "unthrottle test"}}`)
	head := Head{Title: "t", Name: "pool `<b>` ran", From: Origin{Kernel: "6.18"}, Facts: []Fact{{"from", "03:12 UTC"}}}
	if err := page.Execute(&b, head); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"<p>pool <code>&lt;b&gt;</code> ran</p>", "<dt>kernel</dt><dd>6.18</dd>",
		"prefers-color-scheme:dark", "max-width:640px", "default-src 'none'", "03:12 UTC", "</html>"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in the page", want)
		}
	}
	for _, never := range []string{"<b>", "<dt>host</dt>", "url(", "@import", "ZgotmplZ", "script"} {
		if strings.Contains(b.String(), never) {
			t.Errorf("%q in the page", never)
		}
	}
}

// A page that has a script runs that one alone, as it stands there.
func TestScript(t *testing.T) {
	var b strings.Builder
	page := Template("test", `{{template "head" .}}{{template "script" .}}{{template "foot" "unthrottle test"}}`)
	if err := page.Execute(&b, Head{Script: "let a = 1 < 2 && '\"'"}); err != nil {
		t.Fatal(err)
	}
	// printf %s "let a = 1 < 2 && '\"'" | openssl dgst -sha256 -binary | base64
	const sum = "IM05bsG8vEu6pS11h2rBzxce/7B35in5IWTxKz1wqI8="
	if !strings.Contains(b.String(), "<script>let a = 1 < 2 && '\"'</script>") ||
		!strings.Contains(html.UnescapeString(b.String()), "script-src 'sha256-"+sum+"'") {
		t.Error(b.String())
	}
}
