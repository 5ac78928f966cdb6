package next

import (
	"testing"

	"github.com/unthrottle/unthrottle/internal/cure/policy"
)

func TestCommands(t *testing.T) {
	elsewhere := Flags{Scope: "/shop", StateDir: "/tmp/my state"}
	for _, c := range []struct{ got, want string }{
		{Explain("/shop/cart"), "sudo unthrottle explain /shop/cart"},
		{Explain("it's; rm -rf /"), `sudo unthrottle explain 'it'\''s; rm -rf /'`},
		{Explain(""), "sudo unthrottle explain ''"},
		{Forecast("cart.rec"), "unthrottle forecast cart.rec"},
		{Flags{}.Fix("/shop/cart"), "sudo unthrottle fix /shop/cart"},
		{elsewhere.Fix("cart"), "sudo unthrottle fix cart --scope /shop --state-dir '/tmp/my state'"},
		{elsewhere.Status(), "sudo unthrottle status --state-dir '/tmp/my state'"},
		{PlanPin("db", 2), "sudo unthrottle apply db --remedy pin --cpus 2 --dry-run"},
	} {
		if c.got != c.want {
			t.Errorf("%s\nwant %s", c.got, c.want)
		}
	}
}

// Only an answer that fix can act on is followed by fix.
func TestChosen(t *testing.T) {
	for _, c := range []struct {
		choice *policy.Choice
		want   string
	}{
		{nil, ""},
		{&policy.Choice{Answer: policy.AnswerRemedy, Row: 0}, "sudo unthrottle fix cart"},
		{&policy.Choice{Answer: policy.AnswerMoreCPU, Row: 1}, "sudo unthrottle fix cart"},
		{&policy.Choice{Answer: policy.AnswerMoreCPU, Row: -1}, ""},
		{&policy.Choice{Answer: policy.AnswerLeave, Row: -1}, ""},
		{&policy.Choice{Answer: policy.AnswerSetting, Row: 0}, ""},
		{&policy.Choice{Answer: policy.AnswerUnknown, Row: -1}, ""},
	} {
		if got := (Flags{}).Chosen("cart", c.choice); got != c.want {
			t.Errorf("%+v: %q, want %q", c.choice, got, c.want)
		}
	}
}
