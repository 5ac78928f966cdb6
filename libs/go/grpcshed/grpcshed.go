// Package grpcshed answers gRPC calls within a CPU budget, and rejects early those that it would answer too late, as package
// shed does for net/http: with the code Unavailable, upon which clients try elsewhere, or Canceled and DeadlineExceeded where
// the caller has gone. Streams are not held: a stream would keep its permit for as long as it is open, so a handler of one
// acquires a permit for each message that is work.
package grpcshed

import (
	"context"
	"errors"
	"time"

	"github.com/unthrottle/unthrottle/libs/go/budget"
	"github.com/unthrottle/unthrottle/libs/go/shed"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Rule says what is shed.
type Rule struct {
	// Class is the class of a full method, such as /grpc.health.v1.Health/Check; nil: App.
	Class func(method string) budget.Class
	// Objective is how long a call of a class may wait for its start; a class without one is never rejected.
	Objective map[budget.Class]time.Duration
}

func (rule Rule) acquire(ctx context.Context, b shed.Acquirer, method string) (permit budget.Permit, err error) {
	class := budget.App
	if rule.Class != nil {
		class = rule.Class(method)
	}
	if within, ok := rule.Objective[class]; ok {
		permit, err = b.AcquireWithin(ctx, class, within)
	} else {
		permit, err = b.Acquire(ctx, class)
	}
	switch {
	case errors.Is(err, budget.ErrLate):
		return permit, status.Error(codes.Unavailable, "overloaded: the answer would come too late; try again")
	case err != nil:
		return permit, status.FromContextError(err).Err()
	}
	return permit, nil
}

// Unary runs each call within the budget.
func Unary(b shed.Acquirer, rule Rule) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		permit, err := rule.acquire(ctx, b, info.FullMethod)
		if err != nil {
			return nil, err
		}
		defer permit.Release()
		return handler(budget.WithPermit(ctx, &permit), req)
	}
}
