package require

import "testing"

func TestNumber(t *testing.T) {
	const variable = "UNTHROTTLE_TEST_NUMBER"
	if n := Number(t, variable, 7); n != 7 {
		t.Errorf("unset: %d", n)
	}
	t.Setenv(variable, "3")
	if n := Number(t, variable, 7); n != 3 {
		t.Errorf("3 is %d", n)
	}
	for _, bad := range []string{"0", "-1", "many"} {
		t.Setenv(variable, bad)
		if r := record(func(t testing.TB) { Number(t, variable, 7) }); r.failed != variable+"="+bad+": a number above 0 is wanted" {
			t.Errorf("%s: %q", bad, r.failed)
		}
	}
}
