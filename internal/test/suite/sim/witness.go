package sim

import (
	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/object"
)

// Witness is a [collect.Witness] that is called for each value that was converted.
type Witness func()

var _ collect.Witness = Witness(nil)

// Shown implements [collect.Witness].
func (w Witness) Shown(string, object.Object, any) { w() }

// Gone implements [collect.Witness].
func (w Witness) Gone(string, object.Object) {}

// Lent implements [collect.Witness].
func (w Witness) Lent(string, string, object.Object, object.Object) func() { return func() {} }

// Delivered implements [collect.Witness].
func (w Witness) Delivered(collect.Delivery) {}
