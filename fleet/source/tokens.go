package source

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/kates"
)

// ServiceAccountTokens is a provider for [FluxOptions], under the name generic: it logs in by
// tokens of the service account that the ConfigMap names, in its namespace, for clusters that
// trust the home cluster as an OpenID Connect issuer. A ConfigMap that names none is refused. The
// tokens are for the audiences that the ConfigMap names, or else for the cluster's address. They
// are renewed in time.
//
// The needed right is create of serviceaccounts/token. Whoever may write a ConfigMap that Flux's
// objects name can have a token of each service account in its namespace sent to an address of his
// choice, as with Flux.
func ServiceAccountTokens(home *kates.Client) func(FluxCluster) (*rest.Config, error) {
	return func(c FluxCluster) (*rest.Config, error) {
		if c.ServiceAccountName == "" {
			return nil, errors.New("it names no serviceAccountName")
		}
		if err := checkAddress("address", c.Address); err != nil {
			return nil, err
		}
		if !strings.HasPrefix(c.Address, "https://") {
			return nil, errors.New("its address is not one of https, so a token could be read on the way")
		}
		audiences := slices.Clone(c.Audiences)
		if len(audiences) == 0 {
			audiences = []string{c.Address}
		}
		mint := func(ctx context.Context) (authenticationv1.TokenRequestStatus, error) {
			account := &kates.ServiceAccount{}
			account.Namespace, account.Name = c.Namespace, c.ServiceAccountName
			request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: audiences}}
			err := home.CreateSubresource(ctx, account, "token", request, request)
			return request.Status, err
		}
		config := &rest.Config{Host: c.Address, TLSClientConfig: rest.TLSClientConfig{CAData: []byte(c.CA)}}
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &tokens{next: next, mint: mint} })
		return config, nil
	}
}

// tokens is a transport that adds a token to each request.
type tokens struct {
	next http.RoundTripper
	mint func(context.Context) (authenticationv1.TokenRequestStatus, error)
	last atomic.Pointer[authenticationv1.TokenRequestStatus]
}

// renewal is how long before its end a token is renewed.
const renewal = time.Minute

// RoundTrip implements [http.RoundTripper].
func (t *tokens) RoundTrip(r *http.Request) (*http.Response, error) {
	token := t.last.Load()
	if token == nil || time.Until(token.ExpirationTimestamp.Time) < renewal {
		fresh, err := t.mint(r.Context())
		if err != nil {
			if r.Body != nil {
				_ = r.Body.Close() // as transports have to
			}
			// It is not wrapped: a refusal of the home cluster is no answer of this one.
			return nil, fmt.Errorf("get a token of the home cluster: %v", err)
		}
		token = &fresh
		t.last.Store(token)
	}
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+token.Token)
	return t.next.RoundTrip(r)
}

// WrappedRoundTripper lets client-go reach the transport beneath.
func (t *tokens) WrappedRoundTripper() http.RoundTripper { return t.next }
