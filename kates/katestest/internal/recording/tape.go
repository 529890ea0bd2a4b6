package recording

import (
	"cmp"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/kates-go/kates/internal/client/apipath"
)

// tape is a recording, ready to be played. It is never changed once it is made.
type tape struct {
	histories map[key]*history
	singles   map[string][]*Exchange // other answers, by path and query, in order of time
	resources map[string][]*history  // by the path without namespaces
	begin     time.Duration          // when the first answer came
	moments   []time.Duration        // when something happens, in order, each once
}

func newTape(r *Recording) *tape {
	t := &tape{
		histories: map[key]*history{}, singles: map[string][]*Exchange{}, resources: map[string][]*history{},
	}
	of := map[key][]*Exchange{}
	for _, e := range r.Exchanges {
		if t.begin == 0 && e.Status != 0 {
			t.begin = e.Answered
		}
		switch targetOf(http.MethodGet, e.Path, e.Query, "").verb {
		case listing, watching:
			k := keyOf(e.Path, e.Query, formOf(e))
			of[k] = append(of[k], e)
		case getting, asking, unclear:
			if e.Status != 0 {
				t.singles[single(e.Path, e.Query)] = append(t.singles[single(e.Path, e.Query)], e)
			}
		}
	}
	for k, exchanges := range of {
		h := historyOf(k, exchanges)
		t.histories[k] = h
		t.resources[resourceOf(k.path)] = append(t.resources[resourceOf(k.path)], h)
	}
	t.note()
	return t
}

// formOf is the form of the objects of a list or a watch: what the client preferred, unless the
// answer is something else.
func formOf(e *Exchange) string {
	form := clausesOf(e.Accept)[0].form
	if form == formMetadata && len(e.Parts) > 0 && !strings.Contains(string(e.Parts[0].Data), formMetadata) {
		return ""
	}
	return form
}

// single is the key of an answer that is neither a list nor a watch.
func single(path string, query url.Values) string {
	q := url.Values{}
	for name, values := range query {
		if name != "timeout" {
			q[name] = values
		}
	}
	return strings.TrimSuffix(path, "/") + "?" + q.Encode()
}

// resourceOf is a path without its namespace: versions of one resource can be compared.
func resourceOf(path string) string {
	p := apipath.Parse(path, "")
	return p.Group + "/" + p.Version + "/" + p.Resource
}

// note notes the moments.
func (t *tape) note() {
	for _, h := range t.histories {
		for n, s := range h.segments {
			if n > 0 {
				t.moments = append(t.moments, s.at)
			}
			for _, e := range s.entries {
				if e.event != nil {
					t.moments = append(t.moments, e.at)
				}
			}
		}
	}
	for _, all := range t.singles {
		slices.SortStableFunc(all, func(a, b *Exchange) int { return cmp.Compare(a.Answered, b.Answered) })
		for n, e := range all[1:] {
			if !sameBody(e, all[n]) {
				t.moments = append(t.moments, e.Answered)
			}
		}
	}
	slices.Sort(t.moments)
	t.moments = slices.Compact(t.moments)
	t.moments = slices.DeleteFunc(t.moments, func(at time.Duration) bool { return at <= t.begin })
}

func sameBody(a, b *Exchange) bool {
	return a.Status == b.Status && slices.EqualFunc(a.Parts, b.Parts, func(x, y Part) bool {
		return string(x.Data) == string(y.Data)
	})
}

// newest is the newest version that the recording has of a resource at a position, or at all.
func (t *tape) newest(resource string, at time.Duration, ever bool) string {
	newest := ""
	for _, h := range t.resources[resource] {
		if len(h.segments) == 0 {
			continue
		}
		v := h.newest()
		if !ever {
			s, _ := h.in(at)
			_, v = s.reached(at)
		}
		if compareVersions(v, newest) > 0 {
			newest = v
		}
	}
	return newest
}

// answer returns the answer to a get at a position that a client accepts: the latest one, or the
// first if there was none yet.
func (t *tape) answer(path string, query url.Values, accept string, at time.Duration) (*Exchange, bool) {
	var found *Exchange
	for _, e := range t.singles[single(path, query)] {
		if found != nil && e.Answered > at {
			break
		}
		if e.Accept == accept || accepts(accept, e.ContentType) {
			found = e
		}
	}
	return found, found != nil
}

// accepts reports whether a client takes an answer of a type. Discovery has forms, versions and
// groups of its own.
func accepts(accept, contentType string) bool {
	media, is, err := mime.ParseMediaType(contentType)
	if err != nil {
		return contentType == ""
	}
	for part := range strings.SplitSeq(accept, ",") {
		want, params, err := mime.ParseMediaType(part)
		if err != nil {
			continue
		}
		same := params["as"] == is["as"] && params["v"] == is["v"] && params["g"] == is["g"]
		if want == mediaAny || same && (want == media || want == "application/*") {
			return true
		}
	}
	return accept == ""
}

// isEvent reports whether an entry is sent to clients that want bookmarks, or not.
func (e entry) isEvent(bookmarks bool) bool {
	return e.event != nil && (bookmarks || e.event.kind != watch.Bookmark)
}
