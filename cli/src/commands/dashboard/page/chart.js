// Charts: curves over time, and columns for the spans of a window. A chart is redrawn when its data or its width
// changes.

const HEIGHT = 132;
const WIDTH_OF_LETTER = 6.3;
const TIME_STEPS = [15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800];

// Round values from `low` to `high`, with about `wanted` steps. A step is 1, 2, 5 or 10 times a power of ten.
function ticks(low, high, wanted, whole) {
  const raw = (high - low) / wanted || 1;
  const power = 10 ** Math.floor(Math.log10(raw));
  let step = [1, 2, 5, 10].map((times) => times * power).find((value) => value >= raw * 0.999);
  const within = () => {
    if (whole) step = Math.max(1, Math.round(step));
    const values = [];
    for (let at = Math.ceil(low / step - 1e-9); at * step <= high + step * 1e-6; at += 1) values.push(at * step);
    return values;
  };
  const values = within();
  if (values.length > 1) return values;
  step *= Math.round(step / power) === 5 ? 0.4 : 0.5;
  return within();
}

function timeTicks(from, to, width) {
  const step = TIME_STEPS.find((seconds) => ((to - from) / seconds) * 62 <= width) || 172800;
  const offset = new Date(to * 1000).getTimezoneOffset() * 60;
  const values = [];
  for (let at = Math.ceil((from - offset) / step) * step + offset; at <= to; at += step) values.push(at);
  const label = (at) => {
    const date = new Date(at * 1000);
    if (step >= 43200) return `${DAYS[date.getDay()]} ${date.getDate()}`;
    return step < 60 ? clock(at * 1000) : clock(at * 1000).slice(0, 5);
  };
  return values.map((at) => [at, label(at)]);
}

// Draws the frame of a chart: space for the numbers on the left, and grid lines with their numbers.
function frame(width, low, high, format, whole) {
  const marks = ticks(low, high, 3, whole);
  const left = Math.ceil(Math.max(...marks.map((value) => format(value).length), 2) * WIDTH_OF_LETTER) + 8;
  const [top, bottom, right] = [8, HEIGHT - 20, width - 10];
  const y = (value) => bottom - ((value - low) / (high - low || 1)) * (bottom - top);
  const picture = svg('svg', { width, height: HEIGHT, viewBox: `0 0 ${width} ${HEIGHT}`, 'aria-hidden': 'true' });
  for (const value of marks) {
    const at = Math.round(y(value));
    picture.append(svg('line', { class: 'grid', x1: left, x2: right, y1: at, y2: at }),
      svg('text', { x: left - 6, y: y(value) + 4, 'text-anchor': 'end' }, format(value)));
  }
  return { picture, left, right, top, bottom, y };
}

function below(picture, x, bottom, left, right, label) {
  const half = (label.length * WIDTH_OF_LETTER) / 2;
  if (x - half < left - 24 || x + half > right + 10) return;
  picture.append(svg('text', { x, y: bottom + 15, 'text-anchor': 'middle' }, label));
}

// Shows the values of a chart at one place, chosen by pointer, touch or arrow keys.
function reader(chart, picture, places, show, clear) {
  const { host, tip } = chart;
  const nearest = (event) => {
    const x = event.clientX - host.getBoundingClientRect().left;
    let best = 0;
    places.forEach((place, at) => { if (Math.abs(place - x) < Math.abs(places[best] - x)) best = at; });
    return best;
  };
  const mark = svg('g', {});
  picture.append(mark);
  chart.read = (at) => {
    chart.at = at;
    mark.replaceChildren();
    if (clear) clear();
    tip.hidden = at === null;
    if (at === null) return;
    const lines = show(at, mark);
    tip.replaceChildren(...lines.map((line) => el('div', {}, line)));
    const widest = host.clientWidth - tip.offsetWidth;
    tip.style.left = `${Math.max(0, Math.min(widest, places[at] - tip.offsetWidth / 2))}px`;
    tip.style.top = `${-tip.offsetHeight + 4}px`;
  };
  chart.nearest = nearest;
  chart.last = places.length - 1;
  if (chart.at !== null) chart.read(Math.min(chart.at, chart.last));
}

class Chart {
  // `draw` is called with the chart and its width, and draws `data`.
  constructor(label, draw) {
    this.label = label;
    this.tip = el('div', { class: 'tip', hidden: true, role: 'status' });
    // The text for screen readers stands next to the picture, because text inside an image is not read out.
    this.space = el('div', { class: 'space', role: 'img', tabindex: 0, 'aria-label': label });
    this.host = el('div', { class: 'chart' }, this.space, this.tip);
    Object.assign(this, { at: null, last: -1, data: null, draw, nearest: null, read: null });
    const read = (at) => { if (this.read && this.last >= 0) this.read(at); };
    const move = (event) => { if (this.nearest && this.last >= 0) read(this.nearest(event)); };
    this.host.addEventListener('pointermove', move);
    this.host.addEventListener('pointerdown', move);
    this.host.addEventListener('pointerleave', (event) => { if (event.pointerType === 'mouse') read(null); });
    this.host.addEventListener('focusout', () => read(null));
    this.host.addEventListener('keydown', (event) => {
      const at = this.at === null ? this.last : this.at;
      const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: this.last }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      read(Math.max(0, Math.min(this.last, to)));
    });
    new ResizeObserver(() => this.redraw()).observe(this.host);
  }

  show(data) {
    this.data = data;
    this.redraw();
  }

  redraw() {
    const width = Math.floor(this.host.clientWidth);
    if (this.data && width > 60) this.draw(this, width);
  }

  // Shows `text` in place of the chart, to say why no chart is shown.
  none(text) {
    this.last = -1;
    this.tip.hidden = true;
    const place = el('div', { class: 'none-yet' }, text);
    place.style.height = `${HEIGHT}px`;
    this.space.replaceChildren(place);
    setAttribute(this.space, 'aria-label', `${this.label}: ${text}`);
  }
}

// data: times in Unix seconds; lines of {name, values, limit}; a value of null is a gap.
function curves(label, format, whole) {
  return new Chart(label, (chart, width) => {
    const { times, from, to, lines } = chart.data;
    const main = lines.find((line) => !line.limit);
    const seen = main.values.filter(known);
    if (!seen.length) return chart.none('Nothing seen yet');
    const most = Math.max(...seen);
    const limits = lines.filter((line) => line.limit).flatMap((line) => line.values.filter(known))
      .filter((value) => value <= most * 6);
    // A nearly constant curve is drawn from just below its least value. It has no filled area, which would exaggerate
    // changes.
    const least = Math.min(...seen);
    const isFlat = most > 0 && !limits.length && most - least < most * 0.2 && most > least;
    const room = (most - least) * 0.15;
    const low = isFlat ? least - room : 0;
    const high = isFlat ? most + room : Math.max(most, ...limits) * 1.06 || 1;
    const { picture, left, right, top, bottom, y } = frame(width, low, high, format, whole);
    const x = (time) => left + ((time - from) / (to - from || 1)) * (right - left);
    for (const [at, text] of timeTicks(from, to, right - left)) below(picture, x(at), bottom, left, right, text);
    for (const line of lines) {
      if (line.limit && !line.values.some((value) => known(value) && value <= high)) continue;
      const pieces = [[]];
      times.forEach((time, at) => {
        const value = line.values[at];
        if (known(value) && value <= high) pieces.at(-1).push([x(time), y(value)]);
        else if (pieces.at(-1).length) pieces.push([]);
      });
      for (const piece of pieces.filter((points) => points.length)) {
        const path = piece.map(([px, py], at) => `${at ? 'L' : 'M'}${px.toFixed(1)} ${py.toFixed(1)}`).join('');
        if (!line.limit && !isFlat && piece.length > 1) {
          const [first, last] = [piece[0], piece.at(-1)].map(([px]) => px.toFixed(1));
          picture.append(svg('path', { class: 'area', d: `${path}L${last} ${bottom}L${first} ${bottom}Z` }));
        }
        if (piece.length > 1) picture.append(svg('path', { class: line.limit ? 'limit' : 'curve', d: path }));
        else if (!line.limit) picture.append(svg('circle', { class: 'point', cx: piece[0][0], cy: piece[0][1], r: 3 }));
      }
    }
    chart.space.replaceChildren(picture);
    const shown = times.map((_, at) => at).filter((at) => known(main.values[at]));
    const [first, last] = [shown[0], shown.at(-1)];
    setAttribute(chart.space, 'aria-label',
      `${chart.label}: ${format(main.values[first])} at ${moment(times[first] * 1000)}, `
      + `${format(main.values[last])} at ${moment(times[last] * 1000)}. Arrow keys read single values.`);
    reader(chart, picture, shown.map((at) => x(times[at])), (place, mark) => {
      const at = shown[place];
      mark.append(svg('line', { class: 'cursor', x1: x(times[at]), x2: x(times[at]), y1: top, y2: bottom }),
        svg('circle', { class: 'point', cx: x(times[at]), cy: y(main.values[at]), r: 4 }));
      const values = lines.filter((line) => known(line.values[at]))
        .map((line) => `${line.name} ${(line.exact || format)(line.values[at])}`);
      return [moment(times[at] * 1000, true), ...values];
    });
    return undefined;
  });
}

// data: columns of {value, label, lines}, from the longest span to the shortest.
function columns(label, format) {
  return new Chart(label, (chart, width) => {
    const { items } = chart.data;
    if (!items.length) return chart.none(chart.data.why || 'Nothing to show');
    const high = Math.max(1, ...items.map((item) => item.value)) * 1.06;
    const { picture, left, right, bottom, y } = frame(width, 0, high, format, true);
    const each = (right - left) / items.length;
    const centre = (at) => left + each * (at + 0.5);
    const thick = Math.max(1, Math.min(28, each * 0.72));
    const bars = items.map((item, at) => svg('rect', {
      class: 'stem', x: (centre(at) - thick / 2).toFixed(1), width: thick.toFixed(1),
      y: y(item.value).toFixed(1), height: Math.max(0, bottom - y(item.value)).toFixed(1),
    }));
    picture.append(...bars);
    const every = Math.ceil((66 / each) || 1);
    items.forEach((item, at) => {
      if ((items.length - 1 - at) % every === 0) below(picture, centre(at), bottom, left, right, item.label);
    });
    chart.space.replaceChildren(picture);
    const [first, last] = [items[0], items.at(-1)].map((item) => item.lines.join(', '));
    setAttribute(chart.space, 'aria-label', `${chart.label}: ${first}; ${last}. Arrow keys read single values.`);
    reader(chart, picture, items.map((_, at) => centre(at)), (at) => {
      bars[at].setAttribute('class', 'stem at');
      return items[at].lines;
    }, () => bars.forEach((bar) => setAttribute(bar, 'class', 'stem')));
    return undefined;
  });
}

function legend(lines) {
  return el('span', { class: 'legend' }, ...lines.map(([text, limit]) => el('span', {},
    svg('svg', { width: 18, height: 8, 'aria-hidden': 'true' },
      svg('path', { d: 'M0 4h18', class: limit ? 'limit' : 'curve' })), text)));
}

// The least period that a chart shows, in seconds.
const LEAST_SPAN = 60;

// The time axis: `seconds` back from `now`, or back to the first sample if that is later.
function axis(series, seconds, now) {
  const first = series.times.length ? series.times[0] : now;
  return { times: series.times, to: now, from: Math.min(now - LEAST_SPAN, Math.max(now - seconds, first)) };
}
