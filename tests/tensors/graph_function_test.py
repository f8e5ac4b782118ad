"""Graph functions over nests: values, structures, tracing once, refusal of other shapes."""

import contextlib
import ctypes
from typing import NamedTuple

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.eager import context

from seed_acme import types
from seed_acme.tensors import aligned
from seed_acme.tensors import graph_function


class _Pair(NamedTuple):
  left: object
  right: object


def _spec(shape, dtype=tf.float32):
  return tf.TensorSpec(shape, dtype)


def test_nests_go_in_and_come_out_in_their_structure():

  def function(pair, scalar):
    return {'sum': pair.left + pair.right[0], 'rest': _Pair((), [scalar * 2, pair.right[1]])}

  call = graph_function.GraphFunction(
    function, (_Pair(_spec([3]), (_spec([3]), _spec([], tf.int64))), _spec([]))
  )
  output = call(
    _Pair(np.array([1, 2, 3], np.float32), (tf.constant([1.0, 1, 1]), np.int64(7))), np.float32(2.5)
  )
  assert set(output) == {'sum', 'rest'}
  np.testing.assert_array_equal(output['sum'], [2, 3, 4])
  assert type(output['rest']) is _Pair
  assert output['rest'].left == ()
  assert [x.numpy() for x in output['rest'].right] == [5.0, 7]


def test_it_is_traced_once_whatever_the_open_dimension():
  traces = []

  def function(x):
    traces.append(x.shape)
    return tf.reduce_sum(x, axis=1)

  call = graph_function.GraphFunction(function, (_spec([None, 2]),))
  for n in (1, 5, 3):
    np.testing.assert_array_equal(call(np.ones((n, 2), np.float32)), np.full(n, 2))
  assert len(traces) == 1


@pytest.mark.parametrize('argument', [np.ones((2, 3), np.float64), np.ones((2, 3), np.int32)])
def test_another_dtype_is_refused(argument):
  call = graph_function.GraphFunction(lambda x: x * 2, (_spec([None, 3]),))
  with pytest.raises((ValueError, TypeError, tf.errors.InvalidArgumentError)):
    call(argument)


def test_a_wrong_number_of_leaves_is_refused():
  call = graph_function.GraphFunction(lambda x: x[0], ((_spec([]), _spec([])),))
  with pytest.raises((ValueError, TypeError)):
    call((np.float32(1),))


def test_side_effects_happen_once_a_call_and_output_may_be_empty():
  variable = tf.Variable([1.0, 2.0])

  def add(x):
    variable.assign_add(x)
    return ()

  call = graph_function.GraphFunction(add, (_spec([2]),))
  np.testing.assert_array_equal(variable, [1, 2])  # tracing runs no operation
  assert call(np.array([1, 1], np.float32)) == ()
  call(np.array([1, 1], np.float32))
  np.testing.assert_array_equal(variable, [3, 4])


def test_a_user_error_while_tracing_keeps_its_type_and_its_length():

  def function(x):
    raise types.UserError(f'no good: {x.shape}')

  with pytest.raises(types.UserError) as error:
    graph_function.GraphFunction(function, (_spec([3]),))
  assert str(error.value) == 'no good: (3,)'


def test_an_argument_is_not_copied_and_results_do_not_follow_it():
  array = aligned.empty((3, 4), np.dtype(np.float32))
  array[:] = 1
  assert np.shares_memory(memoryview(aligned.to_tensor(array)), array)
  call = graph_function.GraphFunction(lambda x: (x, x + 1), (_spec([None, 4]),))
  results = [call.numpy(array), tuple(x.numpy() for x in call(array))]
  array[:] = 5
  for same, more in results:
    np.testing.assert_array_equal(same, np.ones((3, 4)))
    np.testing.assert_array_equal(more, np.full((3, 4), 2))


def test_an_argument_that_is_read_once_is_not_written_to():
  array = aligned.empty((64, 64), np.dtype(np.float32))
  array[:] = -1
  with graph_function.serial_execution():
    # TensorFlow computes in place where nothing else needs the memory.
    call = graph_function.GraphFunction(lambda x: tf.nn.relu(x) * 2 + 1, (_spec([None, 64]),))
    np.testing.assert_array_equal(call.numpy(array), np.ones((64, 64)))
  np.testing.assert_array_equal(array, np.full((64, 64), -1))


def test_batch_specs_leave_the_first_dimension_open():
  example = {'a': np.zeros((1, 4), np.uint8), 'b': (np.zeros(1, bool),)}
  specs = graph_function.batch_specs(example)
  assert specs['a'] == tf.TensorSpec((None, 4), tf.uint8)
  assert specs['b'][0] == tf.TensorSpec((None,), tf.bool)


def test_a_long_sum_of_large_tensors_runs_op_after_op():
  """TensorFlow would turn it into reference variables, which that executor does not support."""

  def add(x):
    total = x
    for i in range(8):
      total = total + tf.nn.relu(x * float(i))
    return total

  call = graph_function.GraphFunction(add, (_spec([640, 21, 21, 32]),))
  with graph_function.serial_execution():
    output = call(np.ones([640, 21, 21, 32], np.float32))
  np.testing.assert_array_equal(output, 1 + sum(range(8)))


def test_the_executor_is_set_back():
  executor = lambda: context.context().function_call_options.executor_type
  before = executor()
  with pytest.raises(KeyError), graph_function.serial_execution():
    assert executor() == 'SINGLE_THREADED_EXECUTOR'
    raise KeyError
  assert executor() == before


class _MallocInfo(ctypes.Structure):
  _fields_ = [
    (name, ctypes.c_size_t)
    for name in (
      'arena',
      'ordblks',
      'smblks',
      'hblks',
      'hblkhd',
      'usmblks',
      'fsmblks',
      'uordblks',
      'fordblks',
      'keepcost',
    )
  ]


def _allocated_bytes():
  libc = ctypes.CDLL(None)
  if not hasattr(libc, 'mallinfo2'):
    pytest.skip('this C library does not tell what is allocated')
  libc.mallinfo2.restype = _MallocInfo
  return libc.mallinfo2().uordblks


@pytest.mark.parametrize('surroundings', [contextlib.nullcontext, graph_function.serial_execution])
def test_calls_leave_nothing_behind(surroundings):
  variable = tf.Variable(tf.ones([4, 4]))
  call = graph_function.GraphFunction(lambda x: tf.matmul(x, variable), (_spec([None, 4]),))
  rows = np.ones((8, 4), np.float32)
  with surroundings():
    for _ in range(500):
      call.numpy(rows)
    before = _allocated_bytes()
    for _ in range(5000):
      call.numpy(rows)
    # up to 2.11, TensorFlow leaked 390 bytes of each
    assert _allocated_bytes() - before < 5000 * 40


def test_calls_that_failed_do_not_disturb_later_ones():

  def function(x):
    with tf.control_dependencies([tf.debugging.assert_positive(x)]):
      return tf.identity(x)

  checked = graph_function.GraphFunction(function, (_spec([None]),))
  other = graph_function.GraphFunction(lambda x: x * 2, (_spec([None]),))
  for _ in range(3):
    with pytest.raises(tf.errors.InvalidArgumentError):
      checked(np.array([-1], np.float32))
    np.testing.assert_array_equal(checked(np.array([3], np.float32)), [3])
    np.testing.assert_array_equal(other(np.array([3], np.float32)), [6])


def _loops(x):
  """A sum of 0 ... n - 1, and a condition, as a user's core or loss may have."""
  _, total = tf.while_loop(
    lambda i, total: i < tf.size(x), lambda i, total: (i + 1, total + x[i]), (0, tf.constant(0.0))
  )
  return tf.cond(total > 3.0, lambda: total, lambda: -total)


def test_loops_and_conditions_run_where_functions_run_op_after_op():
  function = graph_function.GraphFunction(_loops, (tf.TensorSpec([None], tf.float32),))
  plain = graph_function.GraphFunction(lambda x: x + 1, (tf.TensorSpec([None], tf.float32),))
  with graph_function.serial_execution():
    for _ in range(3):
      assert function(np.float32([1, 2, 3])).numpy() == 6
      assert function(np.float32([1, 2])).numpy() == -3
      assert plain(np.float32([1])).numpy() == 2


def test_the_variables_that_a_function_reads_are_known_in_its_order():
  a, b, c = (tf.Variable(float(i)) for i in range(3))
  function = graph_function.GraphFunction(lambda x: (x + c) * a, (tf.TensorSpec([], tf.float32),))
  assert function.variables_read([a, b, c]) == (2, 0)


def test_an_argument_that_nothing_reads_is_not_converted():
  call = graph_function.GraphFunction(lambda read, unread: read + 1, (_spec([2]), _spec([2])))
  unfit = object()  # TensorFlow cannot make a tensor of it
  np.testing.assert_array_equal(call(np.array([1, 2], np.float32), unfit), [2, 3])


@pytest.mark.parametrize('surroundings', [contextlib.nullcontext, graph_function.serial_execution])
def test_an_argument_whose_results_nothing_reads_is_not_converted(surroundings):

  def function(read, unread):
    tf.matmul(read, tf.cast(unread, tf.float32))  # would fail for the shape of a stand-in
    return read + 1

  call = graph_function.GraphFunction(function, (_spec([None, 2]), _spec([2, 3], tf.int32)))
  with surroundings():
    np.testing.assert_array_equal(call(np.array([[1, 2]], np.float32), object()), [[2, 3]])


def test_arguments_of_a_condition_a_check_and_an_order_are_converted():
  """They reach the output through another function, an effect, or as what must run before."""

  def function(condition, checked, before):
    with tf.control_dependencies([tf.debugging.assert_positive(checked), tf.identity(before)]):
      return tf.cond(condition > 0, lambda: tf.constant(1.0), lambda: tf.constant(2.0))

  call = graph_function.GraphFunction(function, (_spec([]), _spec([2]), _spec([2])))
  arguments = [np.float32(1), np.ones(2, np.float32), np.ones(2, np.float32)]
  assert call(*arguments).numpy() == 1
  assert call(np.float32(-1), *arguments[1:]).numpy() == 2
  with pytest.raises(tf.errors.InvalidArgumentError):
    call(arguments[0], -arguments[1], arguments[2])
  for i in range(3):
    with pytest.raises(ValueError, match='object'):
      call(*arguments[:i], object(), *arguments[i + 1 :])


def test_an_argument_that_is_handed_on_and_one_for_an_effect_are_converted():
  variable = tf.Variable(0.0)

  def function(handed_on, assigned):
    variable.assign(assigned)
    return handed_on

  call = graph_function.GraphFunction(function, (_spec([2]), _spec([])))
  np.testing.assert_array_equal(call(np.array([1, 2], np.float32), np.float32(3)), [1, 2])
  assert variable.numpy() == 3
