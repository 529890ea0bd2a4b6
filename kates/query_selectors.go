package kates

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// Selection narrows a query by labels and fields, as [Query] does.
type Selection struct {
	LabelSelector string
	FieldSelector string
}

// selectors parses the query's own selectors.
func (q Query) selectors() (labels.Selector, fields.Selector, error) {
	return Selection{q.LabelSelector, q.FieldSelector}.selectors()
}

// selectors parses selectors; nil where there are none.
func (q Selection) selectors() (labels.Selector, fields.Selector, error) {
	var l labels.Selector
	var f fields.Selector
	var err error
	if q.LabelSelector != "" {
		if l, err = parseLabels(q.LabelSelector); err != nil {
			return nil, nil, fmt.Errorf("label selector %q: %w", q.LabelSelector, err)
		}
	}
	if q.FieldSelector != "" {
		if f, err = parseFields(q.FieldSelector); err != nil {
			return nil, nil, fmt.Errorf("field selector %q: %w", q.FieldSelector, err)
		}
	}
	return l, f, nil
}

// errSelectsAll is the error of a selector that is not empty, but selects everything, like " "
// and ",". The program that composed it meant fewer objects, and may be about to delete them.
var errSelectsAll = errors.New("it says nothing, so everything would be selected: leave it empty for that")

// parseLabels parses a label selector that is not empty.
func parseLabels(selector string) (labels.Selector, error) {
	l, err := labels.Parse(selector)
	if err == nil && l.Empty() {
		return nil, errSelectsAll
	}
	return l, err
}

// parseFields parses a field selector that is not empty.
func parseFields(selector string) (fields.Selector, error) {
	f, err := fields.ParseSelector(selector)
	if err == nil && f.Empty() {
		return nil, errSelectsAll
	}
	return f, err
}
