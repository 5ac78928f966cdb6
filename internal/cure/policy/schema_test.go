package policy

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// parserKeys are the keys that a parser knows, as it names them when it refuses one.
func parserKeys(t *testing.T, read func(*yaml.Node) error) []string {
	t.Helper()
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte("no_such_key: 1"), &doc); err != nil {
		t.Fatal(err)
	}
	_, list, ok := strings.Cut(fmt.Sprint(read(doc.Content[0])), ": choose from ")
	if !ok {
		t.Fatal("the parser does not say which keys it knows")
	}
	return strings.Split(list, ", ")
}

func names(keys []Key) []string {
	var all []string
	for _, k := range keys {
		all = append(all, k.Name)
	}
	slices.Sort(all)
	return all
}

// TestRuleKeysAreTheParsers: the table has the keys that the parser has.
func TestRuleKeysAreTheParsers(t *testing.T) {
	inner := map[string][]Key{}
	for _, k := range RuleKeys() {
		inner[k.Name] = k.Keys
	}
	for name, c := range map[string]struct {
		table []Key
		read  func(*yaml.Node) error
	}{
		"a rule":      {RuleKeys(), new(Rule).read},
		"match":       {inner["match"], new(Match).read},
		"slo":         {inner["slo"], new(Rule).readSLO},
		"annotations": {inner["annotations"], new(Allowed).read},
	} {
		if got, want := names(c.table), parserKeys(t, c.read); !slices.Equal(got, want) {
			t.Errorf("%s: the table has %v, the parser %v", name, got, want)
		}
	}
}

// TestRuleKeysBoundsAreTheParsers: each value that the table allows is read, and the nearest that it does not is refused.
func TestRuleKeysBoundsAreTheParsers(t *testing.T) {
	try := func(k Key, value string) error {
		// The key's own mistake is wanted, not one about keys that do not go together.
		var doc yaml.Node
		if err := yaml.Unmarshal(fmt.Appendf(nil, "%s: %s", k.Name, value), &doc); err != nil {
			t.Fatal(err)
		}
		err := new(Rule).read(doc.Content[0])
		if err != nil && (strings.Contains(err.Error(), "choose from") || strings.Contains(err.Error(), "not a number") ||
			strings.Contains(err.Error(), "whole number") || strings.Contains(err.Error(), "no more CPU") ||
			strings.Contains(err.Error(), "give a time") || strings.Contains(err.Error(), "true or false") ||
			strings.Contains(err.Error(), "single value") || strings.Contains(err.Error(), "is wanted")) {
			return err
		}
		return nil
	}
	refused := 0
	for _, k := range RuleKeys() {
		var good, bad []string
		list := func(word string) string { return word }
		if k.Type == TypeWords {
			list = func(word string) string { return "[" + word + "]" }
		}
		switch {
		case k.Words != nil:
			for _, word := range k.Words {
				good = append(good, list(word))
			}
			bad = []string{list("pray")}
		case k.Type == TypeWhole:
			good, bad = []string{fmt.Sprint(int(k.Least)), fmt.Sprint(int(k.Most))},
				[]string{fmt.Sprint(int(k.Least) - 1), fmt.Sprint(int(k.Most) + 1), "1.5"}
		case k.Type == TypeNumber:
			good, bad = []string{fmt.Sprint(k.Least + 0.5), fmt.Sprint(k.Most)}, []string{fmt.Sprint(k.Least), fmt.Sprint(k.Most + 1)}
		case k.Type == TypeTruth:
			good, bad = []string{"true", "false"}, []string{"maybe"}
		case k.Type == TypeTime:
			good, bad = []string{"1s", "500ms"}, []string{"soon"}
		case k.Type == TypeText:
			good, bad = []string{"x"}, []string{"[x]"}
		}
		for _, value := range good {
			if err := try(k, value); err != nil {
				t.Errorf("%s: %s is refused: %v", k, value, err)
			}
		}
		for _, value := range bad {
			refused++
			if try(k, value) == nil {
				t.Errorf("%s: %s is taken", k, value)
			}
		}
	}
	if refused < 15 {
		t.Errorf("%d values were refused: the table is not tried", refused)
	}
}
