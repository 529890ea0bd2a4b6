package source

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// sent notes the credentials of requests.
type sent []string

func (s *sent) RoundTrip(r *http.Request) (*http.Response, error) {
	*s = append(*s, r.Header.Get("Authorization"))
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
}

func TestATokenIsRenewedBeforeItEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got sent
		minted, broken := 0, false
		transport := &tokens{next: &got, mint: func(context.Context) (authenticationv1.TokenRequestStatus, error) {
			if broken {
				return authenticationv1.TokenRequestStatus{}, apierrors.NewForbidden(schema.GroupResource{}, "s", errors.New("no rights"))
			}
			minted++
			return authenticationv1.TokenRequestStatus{Token: fmt.Sprint(minted), ExpirationTimestamp: metav1.NewTime(time.Now().Add(time.Hour))}, nil
		}}
		send := func() error {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://a", strings.NewReader("x"))
			must(t, err)
			response, err := transport.RoundTrip(r)
			if err == nil {
				must(t, response.Body.Close())
			}
			if r.Header.Get("Authorization") != "" {
				t.Error("the caller's request has changed")
			}
			return err
		}
		must(t, send())
		time.Sleep(58 * time.Minute)
		must(t, send())
		time.Sleep(61 * time.Second)
		must(t, send())
		if !slices.Equal(got, sent{"Bearer 1", "Bearer 1", "Bearer 2"}) {
			t.Error(got)
		}
		time.Sleep(time.Hour)
		broken = true
		// The fleet takes a refusal for an answer of the cluster, which this is not.
		if err := send(); err == nil || apierrors.IsForbidden(err) || len(got) != 3 {
			t.Errorf("without a token: %v, after %v", err, got)
		}
	})
}

func TestATokenIsNotSentToAnAddressThatIsNotOfHTTPS(t *testing.T) {
	login := ServiceAccountTokens(newHome(t).Client)
	for _, c := range []FluxCluster{
		{Address: "https://a"}, {ServiceAccountName: "s"}, {ServiceAccountName: "s", Address: "http://a"},
		{ServiceAccountName: "s", Address: "a:6443"}, {ServiceAccountName: "s", Address: "https://me:" + canary + "@a"},
	} {
		if _, err := login(c); err == nil || strings.Contains(err.Error(), canary) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if config, err := login(FluxCluster{ServiceAccountName: "s", Address: "https://a", CA: "ca"}); err != nil || string(config.CAData) != "ca" {
		t.Error(config, err)
	}
}
