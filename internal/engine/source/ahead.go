package source

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kates-go/kates/internal/base/lockorder"
)

// Opener is a [Source] that can ask for a page of a list before the one before it is read.
type Opener interface {
	// OpenPage sends a list request, and returns when the answer begins. The end of ctx ends the
	// page. The caller reads the page, or closes it.
	OpenPage(ctx context.Context, o metav1.ListOptions) (Page, error)
}

// Page is the answer to a list request, of which nothing was read yet.
type Page interface {
	// Items reads the page as [Source].ListItems does. It calls head with the list's metadata if
	// these come before the items.
	Items(put func(runtime.Object) error, head func(metav1.ListMeta)) (metav1.ListMeta, error)
	// Bytes is how many bytes of the page were read, decompressed.
	Bytes() int64
	// Close ends a page that is not read.
	Close()
}

// unhurried is how long the reading of a page may take for the next one to be asked for meanwhile.
// Pages that come slowly are asked for one after the other: two at a time would take twice as
// long each, and the server bounds the time of a request.
const unhurried = 10 * time.Second

// ahead makes the requests of [Pages]. Where the token for the next page stands before the items
// of a page, that page is asked for while the items are read: at most one, whose bytes wait in the
// connection's buffers. It answers, or fails, when its turn comes, as if it was asked for only
// then. ahead is for one goroutine, which closes it.
type ahead struct {
	source Opener
	most   func(metav1.ListOptions) time.Duration // the time for a request
	next   *pageRequest                           // the page that was asked for ahead, or nil
	quick  bool                                   // the page before was read in time
	sizes  *sizes                                 // of pages after the first one; nil: as asked for
}

// pageRequest is a list request that is sent.
type pageRequest struct {
	options metav1.ListOptions
	most    time.Duration
	late    *time.Timer
	ctx     context.Context // of this request alone
	cancel  context.CancelCauseFunc
	done    chan struct{} // closed when there is an answer
	page    Page          // the answer, if err is nil
	err     error
}

// list is a [ListOnce].
func (a *ahead) list(ctx context.Context, o metav1.ListOptions, put func(runtime.Object) error) (metav1.ListMeta, error) {
	r := a.next
	a.next = nil
	if r == nil || !samePage(r.options, o) {
		r.drop()
		sized := o
		if a.sizes != nil && o.Continue != "" && o.Limit > 0 {
			sized.Limit = a.sizes.next(o.Limit, a.sizes.remaining)
		}
		r = a.ask(ctx, sized)
		r.open(a.source)
	}
	defer r.end()
	<-r.done
	if r.err != nil {
		return metav1.ListMeta{}, r.why(r.err)
	}
	r.late.Reset(r.most) // it may have waited for its turn
	begun, items := time.Now(), int64(0)
	counted := func(item runtime.Object) error {
		items++
		return put(item)
	}
	m, err := r.page.Items(counted, func(head metav1.ListMeta) {
		if head.Continue == "" || !a.quick || a.next != nil {
			return
		}
		after := o
		after.Continue = head.Continue
		after.ResourceVersion, after.ResourceVersionMatch = "", ""
		if a.sizes != nil && o.Limit > 0 {
			after.Limit = a.sizes.next(o.Limit, head.RemainingItemCount)
		}
		a.next = a.ask(ctx, after)
		go a.next.open(a.source) // ends with its context at the latest: see drop
	})
	a.quick = time.Since(begun) < unhurried
	if a.sizes != nil && err == nil {
		a.sizes.add(items, r.page.Bytes(), time.Since(begun), m.RemainingItemCount)
	}
	return m, r.why(err)
}

// samePage reports whether two requests are for one page. Its size may differ: it was not known
// when the page was asked for ahead.
func samePage(a, b metav1.ListOptions) bool {
	if a.Limit > 0 && b.Limit > 0 {
		a.Limit = b.Limit
	}
	return a == b
}

// close gives up the page that was asked for ahead.
func (a *ahead) close() {
	a.next.drop()
	a.next = nil
}

// ask makes a request that was not sent.
func (a *ahead) ask(ctx context.Context, o metav1.ListOptions) *pageRequest {
	r := &pageRequest{options: o, most: a.most(o), done: make(chan struct{})}
	r.ctx, r.cancel = context.WithCancelCause(ctx)
	r.late = time.AfterFunc(r.most, func() { r.cancel(context.DeadlineExceeded) })
	return r
}

// open sends the request and waits for the answer.
func (r *pageRequest) open(source Opener) {
	defer close(r.done)
	lockorder.CallOut("a list request")
	r.page, r.err = source.OpenPage(r.ctx, r.options)
}

// end ends a request whose answer was read.
func (r *pageRequest) end() {
	r.late.Stop()
	r.cancel(nil)
}

// drop gives up a request, and waits until nothing of it is left. There may be none.
func (r *pageRequest) drop() {
	if r == nil {
		return
	}
	r.end()
	<-r.done
	if r.err == nil {
		r.page.Close()
	}
}

// why returns an error that says so if the time was over.
func (r *pageRequest) why(err error) error {
	if err != nil && context.Cause(r.ctx) == context.DeadlineExceeded {
		return fmt.Errorf("a page did not come within %s: %w", r.most, context.DeadlineExceeded)
	}
	return err
}
