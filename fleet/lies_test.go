package fleet

import (
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kates-go/kates/kates"
)

// lies are what a server may answer in place of the truth. missing: the cluster is among the
// missing. told: changes of its objects are shown all the same. listed: its watches cannot be
// read, and its lists can. It is among the missing between two lists.
var lies = []struct {
	name    string
	missing bool
	told    bool
	listed  bool
	tell    func(s *wired, w http.ResponseWriter, r *http.Request) bool
}{
	{"all is a page", true, false, false, func(_ *wired, w http.ResponseWriter, _ *http.Request) bool { return page(w) }},
	{"lists and watches are a page", true, false, false, ofObjects(func(_ *wired, w http.ResponseWriter, _ *http.Request) bool { return page(w) })},
	{"lists and watches are an empty object", true, false, false, ofObjects(func(_ *wired, w http.ResponseWriter, _ *http.Request) bool {
		say(w, wire{})
		return true
	})},
	{"lists and watches are a status with 200", true, false, false, ofObjects(func(_ *wired, w http.ResponseWriter, _ *http.Request) bool {
		refuse(w, http.StatusOK, "InternalError")
		return true
	})},
	{"watches bring a status with 200 as an object", true, true, true, ofWatches(func(_ *wired) wire {
		return wire{"kind": "Status", "apiVersion": "v1", "metadata": wire{}, "status": "Failure", "code": 200}
	})},
	{"watches bring another kind", true, true, true, ofWatches(func(*wired) wire {
		return wire{"kind": "Secret", "apiVersion": "v1", "metadata": wire{"namespace": "default", "name": "lie", "uid": "lie", "resourceVersion": "900"}}
	})},
	{"watches bring old versions", false, false, false, ofWatches(func(s *wired) wire { return s.object("configmaps", "x", 50) })},
	{"watches bring objects without a name", true, true, true, ofWatches(func(*wired) wire {
		return wire{"kind": "ConfigMap", "apiVersion": "v1", "metadata": wire{"namespace": "default", "uid": "lie", "resourceVersion": "900"}}
	})},
	{"discovery is empty", false, true, false, func(_ *wired, w http.ResponseWriter, r *http.Request) bool { return nothingServed(w, r) }},
	{"discovery is empty, and nothing is found", true, false, false, func(_ *wired, w http.ResponseWriter, r *http.Request) bool {
		if nothingServed(w, r) {
			return true
		}
		if asksFor(r) != "" {
			refuse(w, http.StatusNotFound, "NotFound")
			return true
		}
		return false
	}},
	{"the identity is empty", true, true, false, identity("")},
}

func page(w http.ResponseWriter) bool {
	w.Header().Set("Content-Type", "text/html")
	fmt.Fprint(w, "<html><body>Sign in, please</body></html>")
	return true
}

// ofObjects tells a lie to those who list or watch.
func ofObjects(tell func(*wired, http.ResponseWriter, *http.Request) bool) func(*wired, http.ResponseWriter, *http.Request) bool {
	return func(s *wired, w http.ResponseWriter, r *http.Request) bool { return asksFor(r) != "" && tell(s, w, r) }
}

// ofWatches has each watch bring an object, and stay open.
func ofWatches(object func(*wired) wire) func(*wired, http.ResponseWriter, *http.Request) bool {
	return ofObjects(func(s *wired, w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Query().Get("watch") == "" || asksFor(r) != "configmaps" || r.URL.Query().Get("sendInitialEvents") == "true" {
			return false
		}
		s.mu.Lock()
		cut := s.cut
		s.mu.Unlock()
		say(w, wire{"type": "MODIFIED", "object": object(s)})
		_ = http.NewResponseController(w).Flush()
		select {
		case <-cut:
		case <-r.Context().Done():
		}
		return true
	})
}

func nothingServed(w http.ResponseWriter, r *http.Request) bool {
	switch r.URL.Path {
	case "/api":
		say(w, wire{"kind": "APIVersions", "versions": []string{}})
	case "/apis":
		say(w, wire{"kind": "APIGroupList", "apiVersion": "v1", "groups": []any{}})
	case "/api/v1":
		refuse(w, http.StatusNotFound, "NotFound")
	default:
		return false
	}
	return true
}

func identity(uid string) func(*wired, http.ResponseWriter, *http.Request) bool {
	return func(_ *wired, w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/api/v1/namespaces/kube-system" {
			return false
		}
		say(w, wire{"apiVersion": "v1", "kind": "Namespace", "metadata": wire{"name": "kube-system", "uid": uid}})
		return true
	}
}

// A server lies after a good start. What was last known of its cluster stays, and is said to be
// old where it is; the other cluster's changes are shown. It heals when the truth is told.
func TestG5G8AClusterThatLiesKeepsItsObjectsAndHarmsNoOther(t *testing.T) {
	for _, lie := range lies {
		t.Run(lie.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFleet(t, Options{Client: []kates.Option{kates.WithLogger(slog.New(slog.DiscardHandler))}})
				a, b := newWired(t, "a"), newWired(t, "b")
				for _, s := range []*wired{a, b} {
					s.put("configmaps", "x")
					s.put("services", "s")
					_ = f.Add(s.name, s.config())
				}
				s := watchThings(t, f)
				was := "a/svc/s, a/x, b/svc/s, b/x"
				expect(t, settled(t, s), was)
				first := f.Cluster("a")

				a.tell(func(w http.ResponseWriter, r *http.Request) bool { return lie.tell(a, w, r) })
				began := time.Now()
				a.put("configmaps", "x") // which nobody is told
				for i := range 10 {
					name := fmt.Sprint("y", i)
					b.put("configmaps", name)
					was += ", b/" + name
					time.Sleep(time.Minute)
					snap := settled(t, s)
					want := was
					if lie.missing && (!lie.listed || len(snap.Missing) > 0) {
						want += ", missing a (true)"
					}
					expect(t, snap, want)
					for _, d := range snap.Deltas {
						if d.Cluster == "a" && !(lie.told && i == 0 && d.DeltaType == kates.ObjectUpdate) {
							t.Errorf("%s of %s", d.DeltaType, d.Name)
						}
					}
					for _, m := range snap.Missing {
						since := began.Sub(m.Since)
						if m.Err == nil || since < 0 && !lie.listed || since > time.Minute {
							t.Errorf("%+v, and the lies began at %s", m, began)
						}
					}
				}
				if err := f.Status().Err(); !lie.listed && lie.missing != (err != nil && strings.Contains(err.Error(), `cluster "a"`)) {
					t.Errorf("the status: %v", err)
				}

				a.tell(nil)
				a.put("configmaps", "z")
				time.Sleep(5 * time.Minute)
				expect(t, settled(t, s), "a/svc/s, a/x, a/z, "+strings.TrimPrefix(was, "a/svc/s, a/x, "))
				if f.Cluster("a") != first {
					t.Error("it has become another cluster")
				}
			})
		})
	}
}
