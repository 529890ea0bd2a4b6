package suite

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/kates-go/kates/kates"
)

var structScenarios = []scenario{
	{"AStructTypeMadeAtRunTimeIsWatchedAsOneInTheCode", runtimeStruct},
	{"AStructTypeThatCannotBeWatchedIsAnError", runtimeStructErrors},
}

// fieldOf is an exported field of a type that is made at run time.
func fieldOf[T any](name string, tag reflect.StructTag) reflect.StructField {
	return reflect.StructField{Name: name, Type: reflect.TypeFor[T](), Tag: tag}
}

// made is an accumulator whose snapshots are of a type that is made at run time.
type made struct {
	*kates.Accumulator
	deltas  []*kates.Delta
	invalid []kates.Invalid
	judge   func(*kates.Unstructured) (bool, error)
}

func (m *made) Update(ctx context.Context, into *any) (bool, error) {
	return m.JudgedUpdate(ctx, *into, &m.deltas, &m.invalid, m.judge)
}

func objectsOf[T any](snapshot any, field string) T {
	return reflect.ValueOf(snapshot).Elem().FieldByName(field).Interface().(T)
}

func runtimeStruct(t *testing.T, e *env) {
	e.foreignCreate(e.configMap("c"), e.configMap("refused"), e.secret("s"))
	typ := reflect.StructOf([]reflect.StructField{
		fieldOf[[]*corev1.ConfigMap]("ConfigMaps", ""),
		fieldOf[map[string]*kates.Unstructured]("Hosts", `kates:"hosts.getambassador.io"`),
		fieldOf[[]*corev1.Secret]("Secrets", `kates:",later"`),
		fieldOf[string]("Note", `kates:"-"`),
	})
	here := func(name string) kates.Query { return kates.Query{Name: name, Namespace: e.ns} }
	acc, err := e.client.WatchStruct(e.ctx, typ, here("ConfigMaps"), here("Hosts"))
	require.NoError(t, err)
	reason := errors.New("not this one")
	m := &made{Accumulator: acc, judge: func(u *kates.Unstructured) (bool, error) {
		if u.GetName() == "refused" {
			return false, reason
		}
		return true, nil
	}}
	snap := reflect.New(typ).Interface()
	await(t, m, &snap, "the first one", func(*any) bool {
		return len(objectsOf[[]*corev1.ConfigMap](snap, "ConfigMaps")) >= 1
	})
	assert.Contains(t, names(objectsOf[[]*corev1.ConfigMap](snap, "ConfigMaps")), "c")
	assert.NotContains(t, names(objectsOf[[]*corev1.ConfigMap](snap, "ConfigMaps")), "refused")
	assert.NotNil(t, objectsOf[map[string]*kates.Unstructured](snap, "Hosts"))
	require.Len(t, m.invalid, 1)
	assert.ErrorIs(t, m.invalid[0].Err, reason)
	assert.Equal(t, "refused", m.invalid[0].Object.GetName())
	require.NoError(t, e.client.Create(e.ctx, e.configMap("own"), nil))
	changed, err := m.Update(e.ctx, &snap)
	require.NoError(t, err)
	assert.True(t, changed)
	assert.Equal(t, []string{"add own"}, deltaNames(m.deltas))

	require.NoError(t, m.Add(e.ctx, here("Secrets")), "the field says the kind")
	await(t, m, &snap, "the secrets", func(*any) bool {
		return len(objectsOf[[]*corev1.Secret](snap, "Secrets")) == 1
	})
}

func runtimeStructErrors(t *testing.T, e *env) {
	for says, typ := range map[string]reflect.Type{
		"its type is nil":             nil,
		"a snapshot is a struct":      reflect.TypeFor[[]*corev1.ConfigMap](),
		"no field says what to watch": reflect.StructOf(nil),
		"field Deltas for deltas is not filled here: UpdateWithDeltas": reflect.StructOf([]reflect.StructField{
			fieldOf[[]*corev1.ConfigMap]("ConfigMaps", ""), fieldOf[[]*kates.Delta]("Deltas", ""),
		}),
		"field Left for invalid objects is not filled here": reflect.StructOf([]reflect.StructField{
			fieldOf[[]*corev1.ConfigMap]("ConfigMaps", ""), fieldOf[[]kates.Invalid]("Left", ""),
		}),
		"field Hosts: its type []*unstructured.Unstructured says no kind": reflect.StructOf([]reflect.StructField{
			fieldOf[[]*kates.Unstructured]("Hosts", ""),
		}),
	} {
		_, err := e.client.WatchStruct(e.ctx, typ)
		assert.ErrorContains(t, err, says)
	}
}
