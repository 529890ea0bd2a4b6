package collect

import (
	"github.com/kates-go/kates/accumulator/stream"
	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/guard"
	"github.com/kates-go/kates/internal/lockorder"
	"github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/snapshot"
)

// Convert converts an object for the i-th query of a binding.
func (c *Collector[S]) Convert(b *snapshot.Binding, i int, name string, o stream.Object) snapshot.Row {
	if err := stream.Fault(o); err != nil {
		return snapshot.Row{Source: o, Err: err}
	}
	value, err := b.Convert(i, o)
	if err != nil {
		return snapshot.Row{Source: o, Err: err}
	}
	if c.options.Shown != nil {
		lockorder.CallOut("Options.Shown")
		c.options.Shown(name, o, value)
	}
	return snapshot.Row{Source: o, Value: value}
}

// Same reports whether two objects are one version of one object, in one version of the API. A
// query may have moved to another version of the API, and then shows that.
func (c *Collector[S]) Same(shown, o stream.Object) bool {
	if shown == o {
		return true
	}
	version := o.GetResourceVersion()
	return !c.host.Streams.Config().ByContent && coherence.Comparable(version) &&
		shown.GetResourceVersion() == version && object.UIDOf(shown) == object.UIDOf(o) &&
		shown.GetObjectKind().GroupVersionKind() == o.GetObjectKind().GroupVersionKind()
}

// Report logs invalid objects, and calls the user's callback for each. A panic in it affects
// nothing else.
func (c *Collector[S]) Report(invalid []snapshot.Invalid) {
	for _, i := range invalid {
		log := c.host.Streams.Logger()
		log.V(1).WithValues(guard.Attribute(i.Err)...).Info("object left out", "query", i.Query, "object", object.KeyOf(i.Object).String(), "error", i.Err.Error())
		if c.options.Invalid == nil {
			continue
		}
		err := guard.Named("the callback for invalid objects panicked", func() error {
			c.options.Invalid(i)
			return nil
		})
		if err != nil {
			log.Error(err, "an object that is left out was not reported", guard.Attribute(err)...)
		}
	}
}
