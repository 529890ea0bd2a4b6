package connection

import (
	"context"
	"fmt"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/kates-go/kates/internal/base/plain"
)

// A group version may cost a request, and a resource about a kilobyte of memory, so they are
// bounded by the bytes that discovery may have: as many as would have so many bytes each.
const (
	versionBytes  = 1 << 10
	resourceBytes = 1 << 7
)

// boundedDiscovery is a discovery client for one cache. All answers of a reading together have a
// bound. What is past it is an error of its group version.
type boundedDiscovery struct {
	*discovery.DiscoveryClient
	most int64 // bytes; 0: any number

	reading atomic.Pointer[bill]
}

// bill is what a reading of discovery has cost so far.
type bill struct {
	most             int64
	bytes, resources atomic.Int64
}

// share is what one request of a reading has cost.
type share struct {
	*bill
	bytes int64 // of its goroutine
}

type shareKey struct{}

func shareOf(ctx context.Context) *share {
	s, _ := ctx.Value(shareKey{}).(*share)
	return s
}

// takeBytes counts bytes of an answer. A nil share counts nothing.
func (s *share) takeBytes(n int64) error {
	if s == nil {
		return nil
	}
	s.bytes += n
	if s.bill.bytes.Add(n) > s.most {
		return fmt.Errorf("%w: discovery has more than %d bytes in all", errLongAnswer, s.most)
	}
	return nil
}

// open begins to count a request. done ends it: what failed is not held.
func (b *bill) open(ctx context.Context) (_ context.Context, done func(error)) {
	if b == nil {
		return ctx, func(error) {}
	}
	s := &share{bill: b}
	return context.WithValue(ctx, shareKey{}, s), func(err error) {
		if err != nil {
			b.bytes.Add(-s.bytes)
		}
	}
}

// holds counts resources that are held.
func (b *bill) holds(l *metav1.APIResourceList) error {
	if b == nil || l == nil {
		return nil
	}
	n, most := int64(len(l.APIResources)), b.most/resourceBytes
	if b.resources.Add(n) > most {
		b.resources.Add(-n)
		return fmt.Errorf("%w: %s has %d resources, and discovery has more than %d in all", errLongAnswer, l.GroupVersion, n, most)
	}
	return nil
}

// GroupsAndMaybeResourcesWithContext begins a reading.
func (d *boundedDiscovery) GroupsAndMaybeResourcesWithContext(ctx context.Context) (
	groups *metav1.APIGroupList, resources map[schema.GroupVersion]*metav1.APIResourceList,
	failed map[schema.GroupVersion]error, err error,
) {
	var b *bill
	if d.most > 0 {
		b = &bill{most: d.most}
	}
	d.reading.Store(b)
	ctx, done := b.open(ctx)
	groups, resources, failed, err = d.DiscoveryClient.GroupsAndMaybeResourcesWithContext(ctx)
	if err == nil && b != nil {
		err = b.count(groups)
	}
	for _, one := range resources {
		if err == nil {
			err = b.holds(one)
		}
	}
	if done(err); err != nil {
		return nil, nil, nil, err
	}
	return groups, resources, failed, nil
}

// count is an error if there are too many groups or versions: each may be a request.
func (b *bill) count(groups *metav1.APIGroupList) error {
	n, most := 0, int(b.most/versionBytes)
	for i := range groups.Groups {
		if n += 1 + len(groups.Groups[i].Versions); n > most {
			return fmt.Errorf("%w: discovery has more than %d groups and versions in all; %q is the first one past that",
				errLongAnswer, most, plain.Clip(groups.Groups[i].Name))
		}
	}
	return nil
}

// GroupsAndMaybeResources is that without a context.
func (d *boundedDiscovery) GroupsAndMaybeResources() (
	*metav1.APIGroupList, map[schema.GroupVersion]*metav1.APIResourceList, map[schema.GroupVersion]error, error,
) {
	return d.GroupsAndMaybeResourcesWithContext(context.Background())
}

// ServerResourcesForGroupVersionWithContext goes on with a reading.
func (d *boundedDiscovery) ServerResourcesForGroupVersionWithContext(ctx context.Context, gv string) (*metav1.APIResourceList, error) {
	b := d.reading.Load()
	ctx, done := b.open(ctx)
	list, err := d.DiscoveryClient.ServerResourcesForGroupVersionWithContext(ctx, gv)
	if err == nil {
		err = b.holds(list)
	}
	if done(err); err != nil {
		return nil, err
	}
	return list, nil
}

// ServerResourcesForGroupVersion is that without a context.
func (d *boundedDiscovery) ServerResourcesForGroupVersion(gv string) (*metav1.APIResourceList, error) {
	return d.ServerResourcesForGroupVersionWithContext(context.Background(), gv)
}
