// The curves of a report: charts by measure, drawn by Chart.js from the JSON in the element #data.
'use strict';

// A table that is wider than the page becomes lists (page.css).
(() => {
  const fit = () => {
    for (const frame of document.querySelectorAll('.scroll')) {
      frame.classList.remove('stacked');
      if (frame.scrollWidth > frame.clientWidth) frame.classList.add('stacked');
    }
  };
  fit();
  addEventListener('resize', fit);
  document.addEventListener('toggle', fit, true);  // what is in a closed <details> has no size
})();

(() => {
  const {series, owners} = JSON.parse(document.getElementById('data').textContent);
  const section = document.getElementById('charts');
  if (!section || series.length === 0) return;

  Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;  // that of the charts in SVG

  // Readable on white and on black (Okabe and Ito, "Color Universal Design", with a lighter blue and a darker yellow).
  const palette = ['#2f81d8', '#e07b00', '#009e73', '#cc5fa0', '#8a6fe0', '#b59a00', '#d9483b', '#17a5b8', '#7f8a96', '#8c613c'];
  const kinds = {
    train: {name: 'train', dash: []},
    epoch: {name: 'train, mean of the epoch', dash: [2, 3]},
    validation: {name: 'validation', dash: [7, 4]},
    test: {name: 'test', dash: [10, 3, 2, 3]},
  };
  const kindOf = one => one.event === 'epoch' ? 'epoch' : one.split;
  const kindNames = Object.keys(kinds).filter(kind => series.some(one => kindOf(one) === kind));
  const byOwner = owners.length > 1;
  const colourOf = one => palette[(byOwner ? one.owner : Object.keys(kinds).indexOf(kindOf(one))) % palette.length];
  const measures = [...new Set(series.map(one => one.measure))];
  const isOfClass = measure => /_\d+$/.test(measure);

  const longest = Math.max(...series.filter(one => one.event === 'step').map(one => one.value.length), 0);
  const state = {x: 'step', smoothing: longest > 100 ? 0.6 : 0, log: false, hiddenOwners: new Set(), hiddenKinds: new Set()};
  // The means of epochs of one step are the losses of these steps.
  if (byOwner) state.hiddenKinds.add('epoch');
  const means = series.find(one => one.event === 'epoch');
  const logged = means && series.find(one => one.event === 'step' && one.measure === means.measure && one.owner === means.owner);
  if (logged && means.step.join() === logged.step.join()) state.hiddenKinds.add('epoch');

  // Four significant digits and thousands separated, as in the tables.
  const short = value => {
    if (!Number.isFinite(value)) return 'not a number';
    const rounded = Number(value.toPrecision(4)), size = Math.abs(rounded);
    return size >= 1000 && size < 1e9 ? rounded.toLocaleString('en') : String(rounded);
  };
  const thousands = new Intl.NumberFormat('en', {notation: 'compact', maximumFractionDigits: 2});
  const ticks = value => Math.abs(value) >= 1e6 ? thousands.format(value) : short(value);
  const clock = seconds => {
    if (seconds < 100) return `${Number(seconds.toPrecision(3))} s`;
    const s = Math.round(seconds), parts = [Math.floor(s / 60) % 60, s % 60].map(n => String(n).padStart(2, '0'));
    return `${Math.floor(s / 3600) > 0 ? Math.floor(s / 3600) + ':' : ''}${parts.join(':')}`;
  };
  const place = (x, axis) => axis === 'step' ? `step ${x.toLocaleString('en')}` : clock(x);
  const style = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  // An exponential moving average without the bias towards its beginning, as TensorBoard's.
  const smoothed = (values, weight) => {
    let last = 0, total = 0;
    return values.map(value => {
      if (value === null) return null;
      last = last * weight + (1 - weight) * value;
      total = total * weight + (1 - weight);
      return last / total;
    });
  };
  const points = (one, values) => values.map((value, i) => {
    const drawn = value !== null && !(state.log && value <= 0);
    return {x: one[state.x][i], y: drawn ? value : NaN};
  });

  const datasetsOf = measure => {
    const datasets = [];
    for (const one of series) {
      const kind = kindOf(one);
      if (one.measure !== measure || state.hiddenOwners.has(one.owner) || state.hiddenKinds.has(kind)) continue;
      const colour = colourOf(one), few = one.value.length <= 40;
      const name = [byOwner ? owners[one.owner] : '', kinds[kind].name].filter(Boolean).join(', ');
      // Smaller orders are drawn later.
      const common = {order: one.event === 'step' ? 1 : 0, borderColor: colour, backgroundColor: colour, borderDash: byOwner ? kinds[kind].dash : [], borderWidth: 1.6,
        pointRadius: one.value.length === 1 ? 4 : few ? 2 : 0, pointHoverRadius: 4, pointHitRadius: 8};
      if (one.low) {
        datasets.push({...common, data: points(one, one.low), borderWidth: 0, pointRadius: 0, pointHitRadius: 0, name: `${name}, least`});
        datasets.push({...common, data: points(one, one.high), borderWidth: 0, pointRadius: 0, pointHitRadius: 0, fill: '-1',
          backgroundColor: colour + '33', name: `${name}, largest`});
      }
      const smooth = state.smoothing > 0 && one.event === 'step' && one.value.length > 2 && !isOfRate(measure);
      if (smooth) {
        datasets.push({...common, data: points(one, one.value), borderColor: colour + '40', pointRadius: 0, borderWidth: 1, order: 2, name});
        datasets.push({...common, data: points(one, smoothed(one.value, state.smoothing)), pointRadius: 0, name: `${name}, smoothed`});
      } else {
        datasets.push({...common, data: points(one, one.value), name});
      }
    }
    return datasets;
  };
  const isOfRate = measure => measure === 'learning_rate';

  // A curve that is constant is in the middle of its axis.
  const around = datasets => {
    const first = datasets.length > 0 && datasets[0].data.length > 0 ? datasets[0].data[0].y : NaN;
    const constant = Number.isFinite(first) && datasets.every(set => set.data.every(point => point.y === first));
    return constant && !state.log ? {min: Math.min(0, 2 * first), max: Math.max(2 * first, 0) || 1} : {};
  };

  const scales = datasets => {
    const colour = style('--muted'), grid = {color: style('--line'), borderColor: style('--line')};
    return {
      // The end of the curves is no tick where it is near the last one.
      x: {type: 'linear', bounds: 'data', min: 0, grid, afterBuildTicks: axis => {
          const [second, last, end] = axis.ticks.slice(-3).map(tick => tick.value);
          if (end - last < 0.8 * (last - second)) axis.ticks = axis.ticks.slice(0, -1);
        }, title: {display: true, text: state.x === 'step' ? 'step' : 'time of training', color: colour},
        ticks: {color: colour, maxRotation: 0, autoSkipPadding: 14,
          callback: value => state.x === 'step' ? value.toLocaleString('en') : clock(value)}},
      y: {type: state.log ? 'logarithmic' : 'linear', grid, ...around(datasets),
        ticks: {color: colour, maxTicksLimit: 8, callback: ticks}},
    };
  };

  const charts = new Map();
  const textOf = item => `${item.dataset.name} ${short(item.dataset.data[item.index ?? item.dataIndex].y)}`;

  const draw = (figure, measure) => {
    const canvas = figure.querySelector('canvas');
    const datasets = datasetsOf(measure);
    const chart = new Chart(canvas, {
      type: 'line',
      data: {datasets},
      options: {
        animation: false, responsive: true, maintainAspectRatio: false, parsing: false, normalized: true,
        interaction: {mode: 'nearest', axis: 'x', intersect: false},
        scales: scales(datasets),
        plugins: {
          legend: {display: false},
          tooltip: {callbacks: {
            title: items => items.length ? place(items[0].parsed.x, state.x) : '',
            label: item => ` ${textOf(item)}`,
          }},
        },
      },
    });
    charts.set(measure, chart);
    leaveOutEmpty(chart);
    describe(measure);
    walkByKeys(canvas, figure.querySelector('.readout'), chart);
  };

  // A chart whose curves are all hidden, such as that of a measure of epochs alone.
  const leaveOutEmpty = chart => { chart.canvas.closest('figure').hidden = chart.data.datasets.length === 0; };

  const describe = measure => {
    const chart = charts.get(measure);
    const last = chart.data.datasets.filter(set => set.data.length && !/, (least|largest|smoothed)$/.test(set.name))
      .slice(0, 8).map(set => `${set.name} ${short(set.data[set.data.length - 1].y)}`);
    chart.canvas.setAttribute('aria-label', `${measure} by ${state.x === 'step' ? 'step' : 'time'}. Last values: ` +
      `${last.join('; ') || 'none'}. Arrow keys move along the curve.`);
  };

  // Left and right, Home and End move the tooltip along the curves.
  const walkByKeys = (canvas, readout, chart) => {
    let at = -1;
    const show = () => {
      const sets = chart.data.datasets;
      const longest = sets.reduce((best, set) => set.data.length > best.data.length ? set : best, sets[0]);
      at = Math.min(Math.max(at, 0), longest.data.length - 1);
      const x = longest.data[at].x;
      const active = [];
      sets.forEach((set, datasetIndex) => {
        const index = set.data.findIndex(point => point.x === x);
        if (index >= 0 && Number.isFinite(set.data[index].y)) active.push({datasetIndex, index});
      });
      chart.setActiveElements(active);
      chart.tooltip.setActiveElements(active, {x: 0, y: 0});
      chart.update('none');
      readout.textContent = `${place(x, state.x)}: ` + active.map(({datasetIndex, index}) =>
        textOf({dataset: sets[datasetIndex], index})).join('; ');
    };
    canvas.addEventListener('keydown', event => {
      const sets = chart.data.datasets, moves = {ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity};
      if (!(event.key in moves) || sets.length === 0) return;
      const length = Math.max(...sets.map(set => set.data.length)), far = event.shiftKey ? Math.ceil(length / 20) : 1;
      at = Math.min(Math.max((at < 0 ? 0 : at) + moves[event.key] * far, 0), length - 1);
      show();
      event.preventDefault();
    });
    canvas.addEventListener('blur', () => {
      at = -1;
      readout.textContent = '';
      chart.setActiveElements([]);
      chart.tooltip.setActiveElements([], {x: 0, y: 0});
      chart.update('none');
    });
  };

  const update = () => {
    for (const [measure, chart] of charts) {
      chart.data.datasets = datasetsOf(measure);
      leaveOutEmpty(chart);
      chart.options.scales = scales(chart.data.datasets);
      chart.update('none');
      describe(measure);
    }
  };

  const element = (name, attributes = {}, ...children) => {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  };
  const figureOf = measure => element('figure', {},
    element('figcaption', {}, measure),
    element('div', {class: 'plot'}, element('canvas', {tabindex: '0', role: 'img'})),
    element('p', {class: 'readout', 'aria-live': 'polite'}));

  // ---- controls

  const radio = (value, text) => {
    const input = element('input', {type: 'radio', name: 'x', value});
    input.checked = state.x === value;
    input.addEventListener('change', () => { state.x = value; update(); });
    return element('label', {}, input, ` ${text}`);
  };
  const slider = element('input', {type: 'range', min: '0', max: '0.99', step: '0.01', id: 'smoothing'});
  slider.value = state.smoothing;
  const shown = element('output', {for: 'smoothing'}, state.smoothing.toFixed(2));
  slider.addEventListener('input', () => {
    state.smoothing = Number(slider.value);
    shown.textContent = state.smoothing.toFixed(2);
    update();
  });
  const log = element('input', {type: 'checkbox', id: 'log'});
  log.addEventListener('change', () => { state.log = log.checked; update(); });
  const axis = element('fieldset', {}, element('legend', {}, 'Along'), radio('step', 'steps'), radio('seconds', 'time'));
  section.append(element('div', {class: 'controls'}, axis,
    element('label', {for: 'smoothing'}, 'Smoothing ', slider, ' ', shown),
    element('label', {for: 'log'}, log, ' Logarithmic scale')));

  const sample = (colour, dash) => {
    const box = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
    box.setAttribute('width', 26);
    box.setAttribute('height', 8);
    box.setAttribute('aria-hidden', 'true');
    const line = document.createElementNS('http://www.w3.org/2000/svg', 'path');
    line.setAttribute('d', 'M0 4H26');
    line.setAttribute('stroke', colour);
    line.setAttribute('stroke-width', 2.5);
    line.setAttribute('stroke-dasharray', dash.join(' '));
    box.append(line);
    return box;
  };
  const keys = (label, entries, hidden) => {
    const row = element('div', {class: 'keys', role: 'group', 'aria-label': label});
    for (const {key, text, colour, dash} of entries) {
      const button = element('button', {type: 'button', 'aria-pressed': String(!hidden.has(key))}, sample(colour, dash), text);
      button.addEventListener('click', () => {
        if (!hidden.delete(key)) hidden.add(key);
        button.setAttribute('aria-pressed', String(!hidden.has(key)));
        update();
      });
      row.append(button);
    }
    section.append(row);
  };
  if (byOwner) {
    keys('Runs', owners.map((text, key) => ({key, text, colour: palette[key % palette.length], dash: []}))
      .filter(({key}) => series.some(one => one.owner === key)), state.hiddenOwners);
  }
  keys('Splits', kindNames.map(key => ({key, text: kinds[key].name, dash: byOwner ? kinds[key].dash : [],
    colour: byOwner ? 'currentColor' : colourOf({event: key, split: key})})), state.hiddenKinds);

  // ---- charts; those of single classes when they are asked for

  const grid = element('div', {class: 'charts'});
  section.append(grid);
  const first = measures.filter(measure => !isOfClass(measure)), ofClasses = measures.filter(isOfClass);
  for (const measure of first) {
    const figure = figureOf(measure);
    grid.append(figure);
    draw(figure, measure);
  }
  if (ofClasses.length > 0) {
    const more = element('div', {class: 'charts'});
    const details = element('details', {}, element('summary', {}, `Curves of single classes (${ofClasses.length})`), more);
    details.addEventListener('toggle', () => {
      if (!details.open || more.childElementCount > 0) return;
      for (const measure of ofClasses) {
        const figure = figureOf(measure);
        more.append(figure);
        draw(figure, measure);
      }
    });
    section.append(details);
  }

  // ---- colours of the page, and paper

  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', update);
  const print = on => () => {
    for (const chart of charts.values()) {
      chart.options.devicePixelRatio = on ? 2 : undefined;
      if (on) chart.resize(520, 300);
      else chart.resize();
    }
    update();
  };
  addEventListener('beforeprint', print(true));
  addEventListener('afterprint', print(false));
})();
