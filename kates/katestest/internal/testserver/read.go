package testserver

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kates-go/kates/kates/katestest/internal/testserver/kinds"
	"github.com/kates-go/kates/kates/katestest/internal/testserver/store"
)

func (s *Server) get(w http.ResponseWriter, q *request) error {
	if err := s.waitFor(q); err != nil {
		return err
	}
	o, ok := s.store.Get(q.key())
	if !ok {
		return s.notFound(q)
	}
	c := shown(q.kind, o.Content, o.RV)
	if q.part == "scale" {
		scale, err := scaleOf(q.kind, c)
		if err != nil {
			return err
		}
		c = scale
	}
	s.send(w, q, http.StatusOK, c)
	return nil
}

// listing is what a list asks for.
type listing struct {
	selection
	rv        int64
	asked     bool // the version is given
	match     metav1.ResourceVersionMatch
	limit     int
	from      token
	continues bool
}

// token is where a list goes on.
type token struct {
	Version string `json:"v"`
	RV      int64  `json:"rv"`
	Start   string `json:"start"`
}

const (
	tokenVersion = "meta.k8s.io/v1"
	newest       = -1 // the version of a token that goes on in the newest one
)

func (t token) text() (string, error) {
	raw, err := json.Marshal(t)
	return base64.RawURLEncoding.EncodeToString(raw), err
}

func (s *Server) listing(q *request) (l listing, err error) {
	if l.selection, err = selectionOf(q); err != nil {
		return l, err
	}
	if l.shard, err = s.shardOf(q); err != nil {
		return l, err
	}
	l.match = metav1.ResourceVersionMatch(q.query.Get("resourceVersionMatch"))
	rv, more := q.query.Get("resourceVersion"), q.query.Get("continue")
	if err := matchValid(l.match, rv, more, q.watches(), q.query.Has("sendInitialEvents")); err != nil {
		return l, err
	}
	if rv != "" {
		n, err := strconv.ParseUint(rv, 10, 63)
		if err != nil && q.watches() {
			return l, fmt.Errorf("invalid resource version %q: %w", rv, err)
		}
		if err != nil {
			return l, apierrors.NewBadRequest(fmt.Sprintf("invalid resource version %q: %v", rv, err))
		}
		l.rv, l.asked = int64(n), true
	}
	if limit := q.query.Get("limit"); limit != "" {
		if l.limit, err = strconv.Atoi(limit); err != nil {
			return l, apierrors.NewBadRequest("invalid limit: " + limit)
		}
		l.limit = max(l.limit, 0)
	}
	if seconds := q.query.Get("timeoutSeconds"); seconds != "" {
		if _, err := strconv.Atoi(seconds); err != nil {
			return l, apierrors.NewBadRequest("invalid timeoutSeconds: " + seconds)
		}
	}
	if more == "" {
		return l, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(more)
	if err == nil {
		err = json.Unmarshal(raw, &l.from)
	}
	switch {
	case err != nil || l.from.Version != tokenVersion || l.from.RV < newest || l.from.RV == 0 || l.from.Start == "":
		return l, apierrors.NewBadRequest("continue key is not valid")
	case l.asked && l.rv != 0:
		return l, apierrors.NewBadRequest("specifying resource version is not allowed when using continue")
	}
	l.continues = true
	return l, nil
}

// matchValid checks how a list says which version it wants.
func matchValid(match metav1.ResourceVersionMatch, rv, more string, watch, initial bool) error {
	path := field.NewPath("resourceVersionMatch")
	var errs field.ErrorList
	wrong := func(bad bool, says string) {
		if bad {
			errs = append(errs, field.Forbidden(path, says))
		}
	}
	switch {
	case watch && initial:
		wrong(match != metav1.ResourceVersionMatchNotOlderThan, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan")
		if match != "" && match != metav1.ResourceVersionMatchNotOlderThan {
			errs = append(errs, field.NotSupported(path, match, []string{string(metav1.ResourceVersionMatchNotOlderThan)}))
		}
	case watch:
		wrong(match != "", "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided")
	default:
		wrong(match != "" && rv == "", "resourceVersionMatch is forbidden unless resourceVersion is provided")
		wrong(match != "" && more != "", "resourceVersionMatch is forbidden when continue is provided")
		if match != "" && match != metav1.ResourceVersionMatchExact && match != metav1.ResourceVersionMatchNotOlderThan {
			errs = append(errs, field.NotSupported(path, match, []string{string(metav1.ResourceVersionMatchExact), string(metav1.ResourceVersionMatchNotOlderThan), ""}))
		}
		wrong(match == metav1.ResourceVersionMatchExact && rv == "0", `resourceVersionMatch "exact" is forbidden for resourceVersion "0"`)
		if initial {
			errs = append(errs, field.Forbidden(field.NewPath("sendInitialEvents"), "sendInitialEvents is forbidden for list"))
		}
	}
	if errs == nil {
		return nil
	}
	return apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "ListOptions"}, "", errs)
}

// patience is how long a server waits for a version that it does not have yet.
const patience = 3 * time.Second

// at is the version that a list shows, 0 for the newest one.
func (s *Server) at(q *request, l listing) (int64, error) {
	if l.continues {
		return max(l.from.RV, 0), nil
	}
	if err := s.await(q.Context(), l.rv); err != nil {
		return 0, err
	}
	switch exact := l.match == metav1.ResourceVersionMatchExact || l.match == "" && l.limit > 0; {
	case exact && l.asked && l.rv != 0:
		return l.rv, nil
	}
	return 0, nil
}

// await waits until there is a version, or a server would wait no longer.
func (s *Server) await(ctx context.Context, rv int64) error {
	late := time.NewTimer(patience)
	defer late.Stop()
	for {
		now, more := s.store.Newest()
		if now >= rv {
			return nil
		}
		select {
		case <-more:
		case <-late.C:
			return tooLarge(rv, now)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// waitFor waits for the version that a read of one object asks for.
func (s *Server) waitFor(q *request) error {
	rv := q.query.Get("resourceVersion")
	if rv == "" {
		return nil
	}
	n, err := strconv.ParseUint(rv, 10, 63)
	if err != nil {
		return fmt.Errorf("invalid resource version %q: %w", rv, err)
	}
	return s.await(q.Context(), int64(n))
}

func tooLarge(rv, now int64) error {
	err := apierrors.NewTimeoutError("Too large resource version: "+strconv.FormatInt(rv, 10)+", current: "+strconv.FormatInt(now, 10), 1)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version"}}
	return err
}

// expired is the error of a list that cannot be shown as it was. If the client was going on with
// one, it gets another token, with which it goes on in the newest version.
func (l listing) expired(err error) error {
	if !errors.Is(err, store.ErrCompacted) {
		return err
	}
	if !l.continues {
		return apierrors.NewResourceExpired("The resourceVersion for the provided list is too old.")
	}
	next, err := token{Version: tokenVersion, RV: newest, Start: l.from.Start}.text()
	if err != nil {
		return err
	}
	gone := apierrors.NewResourceExpired("The provided continue parameter is too old to display a consistent list result. " +
		"You can start a new list without the continue parameter, or use the continue token in this response " +
		"to retrieve the remainder of the results.")
	gone.ErrStatus.Continue = next
	return gone
}

func (s *Server) list(w http.ResponseWriter, q *request) error {
	l, err := s.listing(q)
	if err != nil {
		return err
	}
	page, meta, err := s.page(q, l)
	if err != nil {
		return err
	}
	s.send(w, q, http.StatusOK, listOf(q.kind, meta, page))
	return nil
}

// page returns the objects that a list has, and its metadata.
func (s *Server) page(q *request, l listing) (page []store.Change, meta map[string]any, err error) {
	at, err := s.at(q, l)
	if err != nil {
		return nil, nil, err
	}
	page, rv, err := s.store.List(q.kind.Storage, q.namespace, at)
	if err != nil {
		return nil, nil, l.expired(err)
	}
	page = slices.DeleteFunc(page, func(c store.Change) bool {
		return l.continues && c.Key.Path() < l.from.Start || !l.selects(q.kind, c.New.Content)
	})
	meta = map[string]any{"resourceVersion": strconv.FormatInt(rv, 10)}
	if q.kind.Custom != nil {
		meta["continue"] = ""
	} else if l.shard.Field != "" && q.form.as == "" { // lists of custom kinds, and of metadata, do not say it
		meta["shardInfo"] = map[string]any{"selector": l.shard.String()}
	}
	if l.limit > 0 && len(page) > l.limit && !(l.rv == 0 && l.asked) {
		next, err := token{Version: tokenVersion, RV: rv, Start: page[l.limit].Key.Path()}.text()
		if err != nil {
			return nil, nil, err
		}
		meta["continue"] = next
		if l.everything() {
			meta["remainingItemCount"] = int64(len(page) - l.limit)
		}
		page = page[:l.limit]
	}
	return page, meta, nil
}

// listOf is the list of a page.
func listOf(k *kinds.Kind, meta map[string]any, page []store.Change) map[string]any {
	items := make([]any, len(page))
	for i, c := range page {
		item := shown(k, c.New.Content, c.New.RV)
		if k.Custom == nil {
			delete(item, "apiVersion")
			delete(item, "kind")
		}
		items[i] = item
	}
	return map[string]any{"apiVersion": k.GroupVersion().String(), "kind": k.Kind + "List", "metadata": meta, "items": items}
}
