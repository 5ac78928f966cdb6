package reader

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"time"

	authn "k8s.io/api/authentication/v1"
	authz "k8s.io/api/authorization/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Audience is that of tokens which are for this reader alone: stolen, they open nothing else. Tokens for the API server count
// too.
const Audience = "unthrottle"

const (
	// KeepVerdicts is for how long the API server's verdicts count.
	KeepVerdicts = 10 * time.Second
	// mostVerdicts bounds those that are kept.
	mostVerdicts = 4096
)

// ErrNoUser says that a token is nobody's.
var ErrNoUser = errors.New("the API server does not know this token, or it has expired")

// User is whose token it is.
type User struct {
	authn.UserInfo
	key [sha256.Size]byte // of the token
}

// Right is what a user may do.
type Right struct{ Verb, Resource, Subresource, Namespace, Name string }

// Access is what the API server says.
type Access interface {
	// User returns whose token it is; ErrNoUser: nobody's.
	User(ctx context.Context, token string) (User, error)
	// May reports whether a user has a right.
	May(ctx context.Context, u User, r Right) (bool, error)
}

type question struct {
	user  [sha256.Size]byte
	right Right
}

type verdict struct {
	may  bool
	user User
	at   time.Time
}

// cluster asks the API server, and keeps what it said for a while.
type cluster struct {
	client kubernetes.Interface
	now    func() time.Time

	mu   sync.Mutex
	kept map[question]verdict // the user is that of the zero Right
}

// Cluster asks the API server of a client, which needs the rights of system:auth-delegator.
func Cluster(client kubernetes.Interface) Access {
	return &cluster{client: client, now: time.Now, kept: map[question]verdict{}}
}

// recall returns a verdict that still counts.
func (c *cluster) recall(q question) (verdict, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	v, ok := c.kept[q]
	return v, ok && c.now().Sub(v.at) < KeepVerdicts
}

func (c *cluster) keep(q question, v verdict) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.kept) >= mostVerdicts {
		clear(c.kept)
	}
	v.at = c.now()
	c.kept[q] = v
}

// User implements Access.
func (c *cluster) User(ctx context.Context, token string) (User, error) {
	q := question{user: sha256.Sum256([]byte(token))}
	if v, ok := c.recall(q); ok {
		return v.user, nil
	}
	// First as one for this reader alone, then as one for the API server.
	for _, audiences := range [][]string{{Audience}, nil} {
		said, err := c.client.AuthenticationV1().TokenReviews().Create(ctx,
			&authn.TokenReview{Spec: authn.TokenReviewSpec{Token: token, Audiences: audiences}}, meta.CreateOptions{})
		if err != nil {
			return User{}, fmt.Errorf("the API server cannot be asked whose token it is: %w", err)
		}
		if !said.Status.Authenticated {
			continue
		}
		u := User{UserInfo: said.Status.User, key: q.user}
		c.keep(q, verdict{user: u})
		return u, nil
	}
	return User{}, ErrNoUser
}

// May implements Access.
func (c *cluster) May(ctx context.Context, u User, r Right) (bool, error) {
	q := question{u.key, r}
	if v, ok := c.recall(q); ok {
		return v.may, nil
	}
	extra := make(map[string]authz.ExtraValue, len(u.Extra))
	for k, v := range u.Extra {
		extra[k] = authz.ExtraValue(v)
	}
	said, err := c.client.AuthorizationV1().SubjectAccessReviews().Create(ctx,
		&authz.SubjectAccessReview{Spec: authz.SubjectAccessReviewSpec{
			User: u.Username, UID: u.UID, Groups: u.Groups, Extra: extra,
			ResourceAttributes: &authz.ResourceAttributes{Verb: r.Verb, Resource: r.Resource, Subresource: r.Subresource,
				Namespace: r.Namespace, Name: r.Name, Version: "v1"},
		}}, meta.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("the API server cannot be asked what %s may do: %w", u.Username, err)
	}
	c.keep(q, verdict{may: said.Status.Allowed})
	return said.Status.Allowed, nil
}
