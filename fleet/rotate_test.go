package fleet

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/kates/katestest"
)

// site is an API server with nothing but an identity, for whoever has the token. Its connections
// are in memory, so that it can live in a bubble of synctest.
type site struct {
	name    string
	network *katestest.Network
	uid     atomic.Value // string
	token   atomic.Value // string
	asked   atomic.Int32 // with that token
	// silent: it does not say its identity
	silent atomic.Bool
}

func newSite(t *testing.T, uid, token string) *site {
	t.Helper()
	s := &site{name: "site-" + uid + "-" + token + ".test:80", network: katestest.NewNetwork(t)}
	s.uid.Store(uid)
	s.token.Store(token)
	listener, err := s.network.Listen(s.name)
	if err != nil {
		t.Fatal(err)
	}
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Header.Get("Authorization") != "Bearer "+s.token.Load().(string) {
			w.WriteHeader(http.StatusUnauthorized)
			_ = json.NewEncoder(w).Encode(map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Unauthorized", "code": 401})
			return
		}
		s.asked.Add(1)
		if s.silent.Load() {
			w.WriteHeader(http.StatusForbidden)
			_ = json.NewEncoder(w).Encode(map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403})
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{
			"kind": "Namespace", "apiVersion": "v1", "metadata": map[string]any{"name": "kube-system", "uid": s.uid.Load()},
		})
	})
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: handler}}
	server.Start()
	t.Cleanup(func() { s.network.Reset(); server.Close() })
	return s
}

func (s *site) url() string { return "http://" + s.name }

// by is the cluster a with a token. Its Version says whether that is another one: a configuration
// with a function equals no other.
func (s *site) by(token string) Member {
	config := &rest.Config{Host: s.url(), BearerToken: token, Dial: s.network.DialContext}
	return Member{Name: "a", Config: config, Version: s.name + token}
}

// becomes waits until something is so.
func becomes(t *testing.T, f *Fleet, what string, is func(*Cluster) bool) {
	t.Helper()
	eventually(t, f, what, func() bool { c := f.Cluster("a"); return c != nil && is(c) })
}

func TestACredentialThatDoesNotWorkLeavesTheOldOneInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, "1", "old")
		f := newFleet(t, Options{})
		_ = f.Set(s.by("old"))
		becomes(t, f, "it is up", func(c *Cluster) bool { return c.Health().Phase == Up })
		c := f.Cluster("a")
		_ = f.Set(s.by("bad"))
		becomes(t, f, "the refusal is reported", func(c *Cluster) bool { return c.Health().Rotation != "" })
		if h := c.Health(); f.Cluster("a") != c || h.Phase != Up || strings.Contains(h.Rotation, "bad") {
			t.Errorf("%+v", h)
		}
		if err := f.Status().Err(); err == nil || !strings.Contains(err.Error(), "its newest configuration is not in use") {
			t.Errorf("the status: %v", err)
		}
		before := s.asked.Load()
		becomes(t, f, "the old one is in use", func(*Cluster) bool {
			_, err := c.Client().ClusterUID(t.Context())
			return err == nil && s.asked.Load() > before
		})
		// It is tried again: a server may know a new credential later than the fleet.
		s.token.Store("bad")
		becomes(t, f, "the new one is in use", func(c *Cluster) bool { return c.Health().Rotation == "" && c.Health().Phase == Up })
		if f.Cluster("a") != c {
			t.Error("the rotation has made another cluster of it")
		}
	})
}

func TestARotationKeepsTheClusterAndItsClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, replica := newSite(t, "1", "old"), newSite(t, "1", "new")
		f := newFleet(t, Options{})
		_ = f.Set(s.by("old"))
		becomes(t, f, "it is up", func(c *Cluster) bool { return c.UID() == "1" })
		c, client := f.Cluster("a"), f.Cluster("a").Client()
		_ = f.Set(replica.by("new"))
		becomes(t, f, "the new address is in use", func(c *Cluster) bool { return c.Config().Host == replica.url() })
		if f.Cluster("a") != c || c.Client() != client || c.Health().Rotation != "" {
			t.Errorf("another cluster or client: %+v", c.Health())
		}
		old := s.asked.Load()
		if _, err := client.ClusterUID(t.Context()); err != nil || s.asked.Load() != old {
			t.Errorf("the old address is in use: %v", err)
		}
	})
}

func TestAConfigurationForAnotherClusterStartsANewHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, other := newSite(t, "1", "x"), newSite(t, "2", "x")
		f := newFleet(t, Options{})
		_ = f.Set(s.by("x"))
		becomes(t, f, "it is up", func(c *Cluster) bool { return c.UID() == "1" })
		c := f.Cluster("a")
		_ = f.Set(other.by("x"))
		becomes(t, f, "the other has the name", func(c *Cluster) bool { return c.UID() == "2" })
		<-c.Done()
		if f.Cluster("a") == c || c.UID() != "1" {
			t.Error("the histories are mixed")
		}
	})
}

// A cluster whose first configuration has never worked has no history that a later one could
// break.
func TestAConfigurationMayWorkThoughTheFirstOneNeverDid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, "1", "good")
		f := newFleet(t, Options{})
		_ = f.Set(s.by("bad"))
		becomes(t, f, "it is refused", func(c *Cluster) bool { return c.Health().Error != "" })
		_ = f.Set(s.by("good"))
		var then Health
		becomes(t, f, "it is up, or stays where it was", func(c *Cluster) bool {
			then = c.Health()
			return then.Phase == Up || then.Rotation != ""
		})
		if then.Rotation != "" {
			t.Errorf("it cannot be moved: %s", then.Rotation)
		}
	})
}

// A cluster that does not say who it is may be reached by another credential after the old one is
// revoked.
func TestARotationAfterTheOldCredentialWasRevoked(t *testing.T) {
	for name, told := range map[string]bool{"a cluster that says its UID": true, "one that does not": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t, "1", "old")
				s.silent.Store(!told)
				f := newFleet(t, Options{})
				_ = f.Set(s.by("old"))
				becomes(t, f, "it is up", func(c *Cluster) bool { return c.Health().Phase == Up })
				c := f.Cluster("a")
				s.token.Store("new")
				becomes(t, f, "it is stale", func(c *Cluster) bool { return c.Health().Phase == Stale })
				_ = f.Set(s.by("new"))
				becomes(t, f, "it is up again", func(c *Cluster) bool { return c.Health().Phase == Up })
				if f.Cluster("a") != c {
					t.Error("the rotation has made another cluster of it")
				}
			})
		})
	}
}
