package fleet

import (
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kates-go/kates/kates"
)

// gate stands before a wired server. It decides by a request's token, and remembers each request.
type gate struct {
	server *wired

	mu   sync.Mutex
	lets map[string]func(w http.ResponseWriter, r *http.Request, what string) (stopped bool) // by token
	seen []string                                                                            // "token what", in order
}

func opens(http.ResponseWriter, *http.Request, string) bool { return false }

// refuses is the gate's answer to a token that is unknown to the server.
func refuses(w http.ResponseWriter, _ *http.Request, _ string) bool {
	refuse(w, http.StatusUnauthorized, "Unauthorized")
	return true
}

func hangs(_ http.ResponseWriter, r *http.Request, _ string) bool {
	<-r.Context().Done()
	return true
}

// mayNotWatch has a token that is known, whose user lacks a right.
func mayNotWatch(w http.ResponseWriter, _ *http.Request, what string) bool {
	if what != "watch services" {
		return false
	}
	refuse(w, http.StatusForbidden, "Forbidden")
	return true
}

func newGate(t *testing.T, name string) *gate {
	g := &gate{server: newWired(t, name), lets: make(map[string]func(http.ResponseWriter, *http.Request, string) bool)}
	g.server.tell(func(w http.ResponseWriter, r *http.Request) bool {
		token, what := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), "other"
		switch {
		case r.URL.Query().Get("watch") != "":
			what = "watch " + asksFor(r)
		case r.URL.Query().Get("limit") == "1":
			what = "trial" // of a connection
		case asksFor(r) != "":
			what = "list " + asksFor(r)
		case r.Method != http.MethodGet:
			what = "write"
		case strings.HasSuffix(r.URL.Path, "/kube-system"):
			what = "identity"
		}
		g.mu.Lock()
		g.seen = append(g.seen, token+" "+what)
		answer := g.lets[token]
		g.mu.Unlock()
		if answer == nil {
			answer = refuses
		}
		return answer(w, r, what)
	})
	return g
}

func (g *gate) let(token string, answer func(http.ResponseWriter, *http.Request, string) bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.lets[token] = answer
}

// count returns how many requests there were that begin so.
func (g *gate) count(prefix string) (n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, s := range g.seen {
		if strings.HasPrefix(s, prefix) {
			n++
		}
	}
	return n
}

// by is the cluster with a token. Its Version says whether that is another one: a configuration
// with a function equals no other.
func (g *gate) by(token string) Member {
	config := g.server.config()
	config.BearerToken = token
	return Member{Name: "a", Config: config, Version: token}
}

// guarded makes a fleet of a server that lets the token "old" in, and a watch of it.
func guarded(t *testing.T) (*gate, *Fleet, *Snapshots[things]) {
	t.Helper()
	g := newGate(t, "a")
	g.let("old", opens)
	g.server.put("configmaps", "x")
	f := newFleet(t, Options{Client: []kates.Option{kates.WithLogger(slog.New(slog.DiscardHandler))}})
	if err := f.Set(g.by("old")); err != nil {
		t.Fatal(err)
	}
	s := watchThings(t, f)
	expect(t, settled(t, s), "a/x")
	return g, f, s
}

// serves checks that the connection with a token serves: another program's write is shown, and an
// own write is sent with the token and shown at once. Nothing is listed again, deleted or missing.
func (g *gate) serves(t *testing.T, token string, c *Cluster, s *Snapshots[things], theirs, ours string) {
	t.Helper()
	lists, writes := g.count("old list")+g.count("new list"), g.count(token+" write")
	g.server.put("configmaps", theirs)
	if err := c.Client().Apply(t.Context(), configMap(ours), nil); err != nil {
		t.Fatalf("by %s: %v", token, err)
	}
	now := new(things)
	if _, err := s.Update(t.Context(), now); err != nil || !strings.Contains(now.text(), "a/"+ours) {
		t.Errorf("by %s: an own write is not shown at once: %s, %v", token, now.text(), err)
	}
	snap := settled(t, s)
	if !strings.Contains(snap.text(), "a/"+theirs) || !strings.Contains(snap.text(), "a/x") || len(snap.Missing) > 0 {
		t.Errorf("by %s: the snapshot is %s", token, snap.text())
	}
	for _, d := range slices.Concat(now.Deltas, snap.Deltas) {
		if d.DeltaType == kates.ObjectDelete {
			t.Errorf("by %s: %s is deleted", token, d.Name)
		}
	}
	if now := c.Config().BearerToken; now != token {
		t.Errorf("the cluster says that %q is in use, not %q", now, token)
	}
	if n := g.count(token+" write") - writes; n != 1 {
		t.Errorf("%d writes have the token %q", n, token)
	}
	if n := g.count("old list") + g.count("new list") - lists; n != 0 {
		t.Errorf("%d more lists", n)
	}
}

func TestG4G5ARotationThatFailsIsTriedAgainUntilItWorksAndTheOldConnectionServesMeanwhile(t *testing.T) {
	for name, fails := range map[string]struct {
		by    func(http.ResponseWriter, *http.Request, string) bool
		tries int // in a quarter of a minute, at least
	}{
		"the server does not know the credentials yet": {refuses, 4},
		"it hangs with them":                           {hangs, 1},
		"a right is lacking":                           {mayNotWatch, 4},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, f, s := guarded(t)
				c := f.Cluster("a")
				g.let("new", fails.by)
				_ = f.Set(g.by("new"))
				time.Sleep(15 * time.Second)
				if n := g.count("new identity"); n < fails.tries {
					t.Errorf("it was tried %d times in a quarter of a minute", n)
				}
				g.serves(t, "old", c, s, "theirs1", "ours1")
				tries := g.count("new identity")
				time.Sleep(2 * time.Minute) // it takes half a minute to know that it hangs
				if g.count("new identity") == tries {
					t.Error("it is not tried again")
				}
				g.serves(t, "old", c, s, "theirs2", "ours2")
				if n := g.count("new write") + g.count("new list"); n != 0 {
					t.Errorf("%d requests with credentials that do not work", n)
				}

				g.let("new", opens)
				time.Sleep(time.Minute)
				synctest.Wait()
				g.let("old", refuses)
				before := g.count("old")
				g.serves(t, "new", c, s, "theirs3", "ours3")
				time.Sleep(time.Minute)
				g.serves(t, "new", c, s, "theirs4", "ours4")
				if n := g.count("old") - before; n != 0 {
					t.Errorf("%d more requests with the old credentials", n)
				}
				if err := f.Status().Err(); err != nil || f.Cluster("a") != c {
					t.Errorf("%v, the same cluster: %t", err, f.Cluster("a") == c)
				}
			})
		})
	}
}

// A configuration that is tried again does not hold up the next one, and is tried no more.
func TestOfConfigurationsTheNewestIsTried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, f, s := guarded(t)
		c := f.Cluster("a")
		_ = f.Set(g.by("bad"))
		time.Sleep(2 * time.Minute) // the pauses have grown
		synctest.Wait()
		g.let("new", opens)
		_ = f.Set(g.by("new"))
		synctest.Wait()
		bad := g.count("bad")
		if bad == 0 || g.count("new watch configmaps") == 0 {
			t.Errorf("the next configuration waits for the former one: %v", g.seen)
		}
		g.serves(t, "new", c, s, "theirs1", "ours1")
		_ = f.Set(g.by("bad"))
		time.Sleep(time.Minute)
		if g.count("bad") == bad || f.Status().Err() == nil {
			t.Error("it is not tried")
		}
		_ = f.Set(g.by("new")) // the source has taken it back
		synctest.Wait()
		bad = g.count("bad")
		if err := f.Status().Err(); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		g.serves(t, "new", c, s, "theirs2", "ours2")
		if n := g.count("bad") - bad; n != 0 {
			t.Errorf("%d more requests with credentials that were taken back", n)
		}
	})
}

// What is wrong with the next configuration says nothing about the connection in use.
func TestAClusterIsAskedWhetherItAnswersWhileARotationFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, f, s := guarded(t)
		_ = f.Set(g.by("bad"))
		time.Sleep(time.Minute)
		if h := f.Cluster("a").Health(); h.Phase != Up || h.Error != "" {
			t.Errorf("%+v", h)
		}
		g.let("old", hangs)
		time.Sleep(time.Minute)
		if h := f.Cluster("a").Health(); h.Phase != Stale || h.Rotation == "" {
			t.Errorf("it does not answer: %+v", h)
		}
		expect(t, settled(t, s), "a/x, missing a (true)")
		g.let("old", opens)
		time.Sleep(time.Minute)
		expect(t, settled(t, s), "a/x")
	})
}
