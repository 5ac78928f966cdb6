// Package shed answers requests of net/http within a CPU budget, and rejects early those that it would answer too late.
//
// # Problem
//
// A server that is overloaded for a second has a queue. The clients at its end have given up and try again, so that the server
// works on answers that no one reads, and the queue never ends.
//
// # Rule
//
// [Rule.Class] says which class a request is of, [Rule.Objective] how long a class may wait. A request that would wait
// longer gets 503 and Retry-After at once; one that has waited so long gets it then. Both are cheap. As soon as fewer requests
// come than the budget carries, nothing is rejected: there is no state to recover from.
//
// # Limits
//
// A handler holds its permit while it waits for a database, unless it waits within [budget.Wait].
//
// The objective bounds the wait before the handler, not the handler. A request that may not be tried again should not be shed:
// give its class no objective.
package shed

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/unthrottle/unthrottle/libs/go/budget"
)

// Acquirer is what shed needs of a [budget.Budget].
type Acquirer interface {
	Acquire(context.Context, budget.Class) (budget.Permit, error)
	AcquireWithin(context.Context, budget.Class, time.Duration) (budget.Permit, error)
}

// Rule says what is shed.
type Rule struct {
	// Class is the class of a request; nil: App.
	Class func(*http.Request) budget.Class
	// Objective is how long a request of a class may wait for its start; a class without one is never rejected.
	Objective map[budget.Class]time.Duration
}

// Handler runs next within the budget.
func Handler(b Acquirer, rule Rule, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		class := budget.App
		if rule.Class != nil {
			class = rule.Class(r)
		}
		var permit budget.Permit
		var err error
		if within, ok := rule.Objective[class]; ok {
			permit, err = b.AcquireWithin(r.Context(), class, within)
		} else {
			permit, err = b.Acquire(r.Context(), class)
		}
		switch {
		case errors.Is(err, budget.ErrLate):
			w.Header().Set("Retry-After", "1")
			http.Error(w, "overloaded: the answer would come too late; try again", http.StatusServiceUnavailable)
			return
		case err != nil: // the client has gone, or a deadline of the program's own has passed: no answer would read as 200
			w.Header().Set("Retry-After", "1")
			http.Error(w, "the request ended before it could start: "+err.Error(), http.StatusServiceUnavailable)
			return
		}
		defer permit.Release()
		next.ServeHTTP(w, r.WithContext(budget.WithPermit(r.Context(), &permit)))
	})
}
