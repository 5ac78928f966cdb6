package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	authn "k8s.io/api/authentication/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/kubernetes/reader"
)

// renewBefore is how long before its end a token is asked for anew.
const renewBefore = time.Minute

// token is what says to the reader who the user is, now: tokens end, and a command may go on for longer.
func (c *connected) token(ctx context.Context) (string, error) {
	if c.serviceAccount != "" {
		c.lock.Lock()
		defer c.lock.Unlock()
		if c.bearer != "" && time.Until(c.until) > renewBefore {
			return c.bearer, nil
		}
		namespace, name, slash := strings.Cut(c.serviceAccount, "/")
		if !slash {
			namespace, name = c.namespace, c.serviceAccount
		}
		made, err := c.client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, &authn.TokenRequest{Spec: authn.TokenRequestSpec{
			Audiences: []string{reader.Audience}, ExpirationSeconds: new(int64(600))}}, meta.CreateOptions{})
		if err != nil {
			return "", fmt.Errorf("--service-account %s: no token: %w", text.Shown(c.serviceAccount), err)
		}
		c.bearer, c.until = made.Status.Token, made.Status.ExpirationTimestamp.Time
		return c.bearer, nil
	}
	if as := c.config.Impersonate.UserName; as != "" {
		return "", fmt.Errorf("--as %s: the agent would see your own token, and show what you may see; use "+
			"--service-account, or --token of that user", text.Shown(as))
	}
	var seen capture
	wrapped, err := rest.HTTPWrappersForConfig(c.config, &seen)
	if err != nil {
		return "", err
	}
	// Nothing is sent: the address is no matter, and the kubeconfig's may have no scheme.
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://credentials.invalid/", nil)
	if err != nil {
		return "", err
	}
	if _, err := wrapped.RoundTrip(request); !errors.Is(err, errCaptured) {
		return "", fmt.Errorf("the kubeconfig's credentials: %w", err)
	}
	token, ok := strings.CutPrefix(seen.authorization, "Bearer ")
	if !ok || token == "" {
		return "", errors.New("this kubeconfig's user has a client certificate and no token. A certificate ends at " +
			"the API server, so that the agent " +
			"cannot tell who asks. Give --service-account [NAMESPACE/]NAME to read as a service account, or a token " +
			"by --token \"$(kubectl create token NAME)\"")
	}
	return token, nil
}

// capture takes down the header that the kubeconfig's credentials add, and sends nothing.
type capture struct{ authorization string }

var errCaptured = errors.New("captured")

func (c *capture) RoundTrip(r *http.Request) (*http.Response, error) {
	c.authorization = r.Header.Get("Authorization")
	return nil, errCaptured
}
